/* superblock.h - the checksum of the superblock of an HDF5 file in memory.
 * Private to sim/results/.
 *
 * H5Fget_file_image of libhdf5 1.10 clears the flag "open for writing" in the
 * copy, and leaves the checksum over it as it was; no program can open such a
 * file.
 */
#ifndef FRAG_SIM_RESULTS_SUPERBLOCK_H
#define FRAG_SIM_RESULTS_SUPERBLOCK_H

#include <stddef.h>

/* Writes the checksum of a superblock of version 2 or 3 with addresses of 8
 * bytes, at the beginning of the image. Another image is unchanged.
 *
 * Source: HDF5 File Format Specification 3.0, section II.A; the checksum is
 * Bob Jenkins' lookup3 (public domain, 2006), as that specification says. */
void superblock_checksum(unsigned char *image, size_t size);

#endif
