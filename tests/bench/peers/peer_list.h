/* peer_list.h - the peers of this build, for a macro PEER(NAME) of the
 * includer. The build defines PEER_NAME if the sources of the peer are present.
 */
#ifdef PEER_mattconte_tlsf
PEER(mattconte_tlsf)
#endif
#ifdef PEER_offset_allocator
PEER(offset_allocator)
#endif
#ifdef PEER_libcachesim_lru
PEER(libcachesim_lru)
#endif
