/* allocator.cpp - PyTorch's allocator interface (CUDAAllocator) over
 * service.h, so that every function of torch.cuda.memory works under a policy.
 *
 * fragsim_torch.py compiles this file against the installed PyTorch. It is the
 * only file of fragsim in C++, and takes no decision about memory:
 *
 *   - The policy serves all requests outside of memory pools.
 *   - PyTorch's own allocator, which stays in place below this class, serves
 *     the requests of memory pools and CUDA graphs, and all requests after
 *     torch.cuda.caching_allocator_enable(False). While a graph is captured,
 *     it serves all requests of all devices, and frees of the policy's blocks
 *     wait until the end, since the policy would make calls of the driver that
 *     a capture forbids. A capture that failed has ended.
 *   - Statistics, snapshots and histories join both.
 *
 * Source of the interface and of the meaning of each counter: PyTorch 2.11,
 * c10/cuda/CUDACachingAllocator.h and c10/core/CachingDeviceAllocator.h.
 */
#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ApproximateClock.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>
#include <typeinfo>

#include <pthread.h>
#include <unistd.h>

#include "service.h"

namespace {

using namespace c10::CachingAllocator;
using namespace c10::CachingDeviceAllocator;
using namespace c10::cuda::CUDACachingAllocator;
using c10::DeviceIndex;
using c10::MempoolId_t;
using Context = std::shared_ptr<c10::GatheredContext>;
using Guard = std::lock_guard<std::recursive_mutex>;

constexpr size_t small_block = 1 << 20;   // bytes; PyTorch's limit of its
                                          // small pool
constexpr size_t small_segment = 2 << 20; // bytes of a segment of that pool
constexpr uint64_t no_limit = UINT64_MAX;

struct Held {
  size_t size;
  bool mapped; // a map, not a segment
  bool is_small; // of the small pool
  cudaStream_t stream; // of the first request
  uint64_t same; // another address of the same memory, which counts there; or 0
  int file = -1; // a descriptor of the map for other processes. It stays open
                 // until the map is unmapped, so that no receiver sees another
                 // map under the same handle
};
using Range = std::pair<const uint64_t, Held>; // the first is the address

struct Block {
  DeviceIndex device;
  bool ended = false; // freed, but other streams still use it, or its free
                      // waits for the end of a capture
  size_t size;        // bytes allocated
  size_t requested;
  cudaStream_t stream;
  Context context;
  Range* segment = nullptr; // nullptr: the block lies in maps
};

using Blocks = std::map<uint64_t, Block>; // by address

// A part of a held range that a snapshot shows.
struct Shown {
  uint64_t end;
  const Held* held;
};

// The requests that PyTorch's own allocator serves, from beginAllocateToPool to
// endAllocateToPool.
struct Pool {
  DeviceIndex device;
  MempoolId_t id;
  bool captures; // the memory of a graph, not of a MemPool
  std::function<bool(cudaStream_t)> filter;
  cudaStream_t stream;    // of a capture: the stream that is captured,
  std::thread::id thread; // the thread that begins it,
  bool began = false;     // and whether it is known to have begun or failed to
};

struct Device {
  DeviceStats stats;      // of the policy and of PyTorch's own allocator
  DeviceStats below;      // of the latter, when `stats` was last updated
  std::map<uint64_t, Held> held; // by address
  std::deque<c10::approx_time_t> emptied; // times of empty_cache calls
  size_t doubles = 0; // of `held`, whose memory has another address too
  std::deque<TraceEntry> history;
  double fraction = 1.0;
  uint64_t total = 0, allowed = no_limit; // bytes; of the device, of `fraction`
  uint64_t allowed_below = no_limit; // of them, last left to PyTorch's own
  std::vector<MempoolId_t> spare; // the pools that serve before a refusal
};

// The calls of record_function and torch.compile name what runs in this thread.
thread_local std::vector<std::string> compile_contexts;
thread_local std::string user_metadata;

bool forked = false; // from a process that uses a device: this one has none

// Makes a call of service.h that must not fail; `words` is its last argument.
template <typename Function, typename... Arguments>
void must(Function* call, Arguments... arguments) {
  char words[FRAG_TORCH_WORDS] = "";
  TORCH_CHECK(call(arguments..., words) == FRAG_TORCH_OK, "fragsim: ", words);
}

/* ---- counters ---- */

void add(StatArray& stat, bool is_small, int64_t by) {
  for (StatType type : {StatType::AGGREGATE, is_small ? StatType::SMALL_POOL
                                                  : StatType::LARGE_POOL}) {
    Stat& s = stat[static_cast<size_t>(type)];
    by < 0 ? s.decrease(-by) : s.increase(by);
  }
}

// Each array of counters, for work on all of them.
constexpr StatArray DeviceStats::*arrays[] = {
    &DeviceStats::allocation,      &DeviceStats::segment,
    &DeviceStats::active,          &DeviceStats::inactive_split,
    &DeviceStats::allocated_bytes, &DeviceStats::reserved_bytes,
    &DeviceStats::active_bytes,    &DeviceStats::inactive_split_bytes,
    &DeviceStats::requested_bytes};
constexpr Stat DeviceStats::*singles[] = {
    &DeviceStats::oversize_allocations, &DeviceStats::oversize_segments};
constexpr int64_t DeviceStats::*sums[] = {
    &DeviceStats::num_alloc_retries, &DeviceStats::num_ooms,
    &DeviceStats::num_sync_all_streams, &DeviceStats::num_device_alloc,
    &DeviceStats::num_device_free};

void move(Stat& s, const Stat& from, const Stat& to) {
  s.current += to.current - from.current;
  s.allocated += to.allocated - from.allocated;
  s.freed += to.freed - from.freed;
  s.peak = std::max(s.peak, s.current);
}

void each(DeviceStats& stats, void (Stat::*reset)()) {
  for (auto array : arrays)
    for (Stat& s : stats.*array)
      (s.*reset)();
  for (auto single : singles)
    (stats.*single.*reset)();
}

/* ---- the allocator ---- */

class Allocator final : public CUDAAllocator {
 public:
  static Allocator& instance() {
    static auto* made = new Allocator; // never destroyed: frees may come late
    return *made;
  }

  void install(const std::string& policy);

  c10::DataPtr allocate(size_t size) override;
  c10::DeleterFnPtr raw_deleter() const override {
    return &delete_block;
  }
  void copy_data(void* to, const void* from, size_t size) const override {
    C10_CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice));
  }
  void* raw_alloc(size_t size) override {
    DeviceIndex device = c10::cuda::current_device();
    return serve(device, size, c10::cuda::getCurrentCUDAStream(device));
  }
  void* raw_alloc_with_stream(size_t size, cudaStream_t stream) override {
    return serve(c10::cuda::current_device(), size, stream);
  }
  void raw_delete(void* ptr) override;
  void init(int count) override {
    below_->init(count);
    learn_fractions(count);
  }
  bool initialized() override {
    return below_->initialized();
  }
  double getMemoryFraction(DeviceIndex device) override {
    Guard guard(lock_);
    return at(device).fraction;
  }
  void setMemoryFraction(double fraction, DeviceIndex device) override;
  std::vector<StreamSegmentSize> getExpandableSegmentSizes(
      DeviceIndex device) override {
    return below_->getExpandableSegmentSizes(device);
  }
  void enable(bool value) override {
    below_->enable(value);
  }
  bool isEnabled() const override {
    return below_->isEnabled();
  }
  void emptyCache(MempoolId_t pool) override;
  void cacheInfo(DeviceIndex device, size_t* largest) override;
  void* getBaseAllocation(void* ptr, size_t* size) override;
  void recordStream(const c10::DataPtr& ptr, c10::cuda::CUDAStream s) override;
  using CUDAAllocator::recordStream;
  DeviceStats getDeviceStats(DeviceIndex device) override {
    catch_up(device);
    Guard guard(lock_);
    return at(device).stats;
  }
  void resetAccumulatedStats(DeviceIndex device) override {
    catch_up(device);
    Guard guard(lock_);
    DeviceStats& stats = at(device).stats;
    each(stats, &Stat::reset_accumulated);
    for (auto sum : sums)
      stats.*sum = 0;
  }
  void resetPeakStats(DeviceIndex device) override {
    catch_up(device);
    Guard guard(lock_);
    each(at(device).stats, &Stat::reset_peak);
  }
  SnapshotInfo snapshot(MempoolId_t pool, bool include_traces) override;

  void beginAllocateToPool(DeviceIndex device, MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override;
  void endAllocateToPool(DeviceIndex device, MempoolId_t pool) override;
  void releasePool(DeviceIndex device, MempoolId_t pool) override {
    below_->releasePool(device, pool);
    if (below_->getPoolUseCount(device, pool) == 0)
      set_spare(device, pool, false);
    catch_up(device);
  }
  int getPoolUseCount(DeviceIndex device, MempoolId_t pool) override {
    return below_->getPoolUseCount(device, pool);
  }
  void createOrIncrefPool(DeviceIndex device, MempoolId_t pool,
                          std::shared_ptr<CUDAAllocator> from) override {
    below_->createOrIncrefPool(device, pool, std::move(from));
  }
  void setUseOnOOM(DeviceIndex device, MempoolId_t pool, bool use) override {
    below_->setUseOnOOM(device, pool, use);
    set_spare(device, pool, use);
  }
  void setNoSplit(DeviceIndex device, MempoolId_t pool) override {
    below_->setNoSplit(device, pool);
  }
  bool checkPoolLiveAllocations(
      DeviceIndex device, MempoolId_t pool,
      const std::unordered_set<void*>& expected) override {
    return below_->checkPoolLiveAllocations(device, pool, expected);
  }
  std::shared_ptr<AllocatorState> getCheckpointState(
      DeviceIndex device, MempoolId_t pool) override {
    return below_->getCheckpointState(device, pool);
  }
  CheckpointDelta setCheckpointPoolState(
      DeviceIndex device, std::shared_ptr<AllocatorState> state) override;

  ShareableHandle shareIpcHandle(void* ptr) override;
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override;
  void enablePeerAccess(DeviceIndex device, DeviceIndex peer) override {
    below_->enablePeerAccess(device, peer);
    // `device` will access the memory of `peer`.
    must(frag_torch_peer, peer, device);
  }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from,
                          int from_device, size_t count, cudaStream_t stream,
                          bool p2p_enabled) override {
    return p2p_enabled || to_device == from_device
        ? cudaMemcpyAsync(to, from, count, cudaMemcpyDeviceToDevice, stream)
        : cudaMemcpyPeerAsync(to, to_device, from, from_device, count, stream);
  }

  bool isHistoryEnabled() override {
    return recording_;
  }
  void recordHistory(bool enabled, CreateContextFn recorder, size_t most,
                     RecordContext when, bool clear,
                     const std::vector<std::string>& skip) override;
  void recordAnnotation(
      const std::vector<std::pair<std::string, std::string>>& md) override {
    below_->recordAnnotation(md);
  }
  void pushCompileContext(std::string& md) override {
    compile_contexts.push_back(md);
    below_->pushCompileContext(md);
  }
  void popCompileContext() override {
    if (!compile_contexts.empty())
      compile_contexts.pop_back();
    below_->popCompileContext();
  }
  void setUserMetadata(const std::string& md) override {
    user_metadata = md;
    below_->setUserMetadata(md);
  }
  std::string getUserMetadata() override {
    return user_metadata;
  }
  void attachOutOfMemoryObserver(OutOfMemoryObserver observer) override {
    below_->attachOutOfMemoryObserver(observer);
    Guard guard(lock_);
    observers_.push_back(std::move(observer));
  }
  void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override {
    below_->attachAllocatorTraceTracker(tracker);
    Guard guard(lock_);
    trackers_.push_back(std::move(tracker));
  }
  std::string name() override {
    return "fragsim";
  }

 private:
  static void delete_block(void* ptr) {
    instance().raw_delete(ptr);
  }

  Device& at(DeviceIndex device);
  void catch_up(DeviceIndex device);
  Context context(RecordContext least) const;
  void record(TraceEntry::Action action, DeviceIndex device, uint64_t addr,
              size_t size, cudaStream_t stream, Context context);
  bool below_serves(DeviceIndex device, cudaStream_t stream);
  bool captures();
  void end_failed();
  void* take_below(DeviceIndex device, size_t size, cudaStream_t stream);
  void* take_spare(DeviceIndex device, size_t size, cudaStream_t stream);
  void set_spare(DeviceIndex device, MempoolId_t pool, bool use);
  void learn_fractions(int count);
  void limit_policy(DeviceIndex device);
  void limit_below(DeviceIndex device);
  bool take(DeviceIndex device, size_t size, cudaStream_t stream, void** out,
            frag_torch_answer* answer, char* words);
  void* serve(DeviceIndex device, size_t size, cudaStream_t stream);
  bool make_room(DeviceIndex device);
  [[noreturn]] void refuse(DeviceIndex device, size_t size, cudaStream_t stream,
                           const char* words);
  void end(Blocks::iterator block);
  void complete(Blocks::iterator block);
  void freed(uint64_t addr);
  void changed(int device, frag_torch_change change, uint64_t addr,
               uint64_t size, uint64_t same);
  void reserved(int device, uint64_t bytes);
  void enter_segment(Device& d, Blocks::iterator block);
  void leave_segment(Device& d, Blocks::iterator block);
  void change_split(Device& d, Blocks::iterator block, int sign);
  void note_parts(Device& d, uint64_t addr, const Block& b, bool taken);
  void end_waiting();
  ShareableHandle share_maps(DeviceIndex device, uint64_t addr, size_t size);
  std::vector<SegmentInfo> segments();
  void annotate(SnapshotInfo& info, DeviceIndex device);

  // Recursive, since an observer or a tracker may ask for statistics.
  mutable std::recursive_mutex lock_;
  CUDAAllocator* below_ = nullptr;
  std::deque<Device> devices_;
  Blocks blocks_; // of the policy
  std::vector<Pool> pools_;
  std::vector<Pool> over_; // captures that PyTorch's own allocator does not know
                           // to be over
  std::set<std::pair<DeviceIndex, MempoolId_t>> ended_; // that it was told
  std::vector<void*> waiting_; // frees that wait for the end of a capture, or
                               // that the driver refused
  std::map<std::string, std::weak_ptr<void>> imported_; // by handle
  cudaStream_t stream_ = nullptr; // of the request that the policy serves
  Context context_; // of the request, free or empty_cache that is served

  std::string policy_;
  bool small_maps_ = false; // as expandable segments, the policy maps the small
                            // pool by small_segment bytes, the large one by more
  bool recording_ = false;
  CreateContextFn recorder_ = nullptr;
  RecordContext when_ = RecordContext::NEVER;
  size_t most_ = 1;
  std::vector<std::string> skip_;
  std::vector<OutOfMemoryObserver> observers_;
  std::vector<AllocatorTraceTracker> trackers_;
  c10::ApproximateClockToUnixTimeConverter clock_;
};

Device& Allocator::at(DeviceIndex device) {
  while (devices_.size() <= static_cast<size_t>(device))
    devices_.emplace_back();
  return devices_[device];
}

// Adds to the statistics what PyTorch's own allocator has counted since.
void Allocator::catch_up(DeviceIndex device) {
  DeviceStats now = below_->getDeviceStats(device);
  Guard guard(lock_);
  Device& d = at(device);
  for (auto array : arrays)
    for (size_t i = 0; i < (now.*array).size(); i++)
      move((d.stats.*array)[i], (d.below.*array)[i], (now.*array)[i]);
  for (auto single : singles)
    move(d.stats.*single, d.below.*single, now.*single);
  for (auto sum : sums)
    d.stats.*sum += now.*sum - d.below.*sum;
  d.stats.max_split_size = now.max_split_size;
  d.below = now;
  limit_policy(device);
}

/* ---- history ---- */

// The recorder may need locks of the program, so no lock is held here.
Context Allocator::context(RecordContext least) const {
  return recording_ && recorder_ && when_ >= least ? recorder_() : nullptr;
}

const char* word_of(TraceEntry::Action action) {
  static const char* const words[] = {
      "alloc",        "free_requested", "free_completed",
      "segment_alloc", "segment_free",  "segment_map",
      "segment_unmap", "snapshot",      "oom"};
  return words[action];
}

void Allocator::record(TraceEntry::Action action, DeviceIndex device,
                       uint64_t addr, size_t size, cudaStream_t stream,
                       Context context) {
  bool kept = recording_ &&
      std::find(skip_.begin(), skip_.end(), word_of(action)) == skip_.end();
  if (!kept && trackers_.empty())
    return;
  if (when_ < RecordContext::ALLOC)
    context = nullptr;
  TraceEntry entry(
      action, device, addr, size, stream, MempoolId_t{0, 0},
      c10::getApproximateTime(), std::move(context),
      compile_contexts.empty() ? "N/A" : compile_contexts.back(), user_metadata);
  for (auto& tracker : trackers_)
    tracker(entry);
  if (!kept)
    return;
  Device& d = at(device);
  d.history.push_back(std::move(entry));
  if (d.history.size() > most_)
    d.history.pop_front();
}

void Allocator::recordHistory(bool enabled, CreateContextFn recorder,
                              size_t most, RecordContext when, bool clear,
                              const std::vector<std::string>& skip) {
  below_->recordHistory(enabled, recorder, most, when, clear, skip);
  Guard guard(lock_);
  recording_ = enabled;
  recorder_ = recorder;
  most_ = std::max<size_t>(1, most);
  when_ = enabled ? when : RecordContext::NEVER;
  skip_ = skip;
  for (Device& d : devices_)
    if (clear || !enabled) {
      d.history.clear();
      d.emptied.clear();
    }
}

/* ---- what the policy reports ---- */

// The held range that contains the address, or the end.
std::map<uint64_t, Held>::iterator around(Device& d, uint64_t addr) {
  auto next = d.held.upper_bound(addr);
  if (next == d.held.begin())
    return d.held.end();
  auto found = std::prev(next);
  return addr < found->first + found->second.size ? found : d.held.end();
}

// Notes in the history that memory of two addresses now counts at the address of
// the block, or no longer does.
void Allocator::note_parts(Device& d, uint64_t addr, const Block& b,
                           bool taken) {
  if (!d.doubles)
    return;
  for (auto at = around(d, addr);
       at != d.held.end() && at->first < addr + b.size; ++at) {
    uint64_t same = at->second.same;
    if (!same)
      continue;
    uint64_t from = std::max(addr, at->first);
    uint64_t size =
        std::min(addr + b.size, at->first + at->second.size) - from;
    uint64_t other = same + (from - at->first);
    record(TraceEntry::SEGMENT_UNMAP, b.device, taken ? other : from, size,
           b.stream, b.context);
    record(TraceEntry::SEGMENT_MAP, b.device, taken ? from : other, size,
           b.stream, b.context);
  }
}

// A block of a segment is allocated (sign 1) or free (sign -1): changes the
// counters of the gaps between the blocks of a segment. As PyTorch counts them,
// they are free memory of a segment that has live blocks too. Maps do not
// count, since their pages can be released one by one.
void Allocator::change_split(Device& d, Blocks::iterator block, int sign) {
  auto& [addr, b] = *block;
  const auto& [start, held] = *b.segment;
  auto before = block == blocks_.begin() ? blocks_.end() : std::prev(block);
  auto after = std::next(block);
  auto is_beside = [&](Blocks::iterator other) {
    return other != blocks_.end() && other->second.segment == b.segment;
  };
  bool alone = !is_beside(before) && !is_beside(after);
  uint64_t from =
      is_beside(before) ? before->first + before->second.size : start;
  uint64_t to = is_beside(after) ? after->first : start + held.size;
  int64_t gaps = (from != addr) + (to != addr + b.size) - !alone;
  int64_t bytes = static_cast<int64_t>(alone ? held.size : 0) -
      static_cast<int64_t>(b.size);
  add(d.stats.inactive_split, held.is_small, sign * gaps);
  add(d.stats.inactive_split_bytes, held.is_small, sign * bytes);
}

void Allocator::enter_segment(Device& d, Blocks::iterator block) {
  if (d.stats.segment[0].current == d.below.segment[0].current)
    return; // the policy holds maps only
  auto held = around(d, block->first);
  if (held == d.held.end() || held->second.mapped)
    return;
  block->second.segment = &*held;
  change_split(d, block, 1);
}

void Allocator::leave_segment(Device& d, Blocks::iterator block) {
  if (!block->second.segment)
    return;
  change_split(d, block, -1);
  block->second.segment = nullptr;
}

// The free of a block is complete; the lock is held.
void Allocator::complete(Blocks::iterator block) {
  auto& [addr, b] = *block;
  Device& d = at(b.device);
  bool is_small = b.size <= small_block;
  leave_segment(d, block);
  add(d.stats.active, is_small, -1);
  add(d.stats.active_bytes, is_small, -static_cast<int64_t>(b.size));
  add(d.stats.requested_bytes, is_small, -static_cast<int64_t>(b.requested));
  auto gone = blocks_.extract(block); // a tracker must not find it
  record(TraceEntry::FREE_COMPLETED, b.device, addr, b.requested, b.stream,
         context_ ? context_ : b.context);
  note_parts(d, addr, b, false);
}

void Allocator::freed(uint64_t addr) {
  Guard guard(lock_);
  auto found = blocks_.find(addr);
  if (found != blocks_.end())
    complete(found);
}

void Allocator::changed(int device, frag_torch_change change, uint64_t addr,
                        uint64_t size, uint64_t same) {
  static const TraceEntry::Action actions[] = {
      TraceEntry::SEGMENT_ALLOC, TraceEntry::SEGMENT_FREE,
      TraceEntry::SEGMENT_MAP, TraceEntry::SEGMENT_UNMAP};
  Guard guard(lock_);
  Device& d = at(device);
  bool mapped = change == FRAG_TORCH_MAP || change == FRAG_TORCH_UNMAP;
  bool taken = change == FRAG_TORCH_SEGMENT || change == FRAG_TORCH_MAP;
  bool is_small = size <= small_segment && (!mapped || small_maps_);
  if (!mapped)
    add(d.stats.segment, is_small, taken ? 1 : -1);
  ++(taken ? d.stats.num_device_alloc : d.stats.num_device_free);
  cudaStream_t stream = stream_;
  auto note = [&](uint64_t from, uint64_t to) {
    if (from < to)
      record(actions[change], device, from, to - from, stream, context_);
  };
  uint64_t next = addr; // the first byte that is not recorded yet
  if (taken) {
    d.held[addr] = Held{size, mapped, is_small, stream_, same};
    if (is_small)
      add(d.stats.reserved_bytes, true, size);
    d.doubles += same != 0;
    next += same ? size : 0;
  } else {
    // The policy may release a segment before it reports the last frees.
    for (auto b = blocks_.lower_bound(addr);
         b != blocks_.end() && b->first < addr + size; ++b)
      leave_segment(d, b);
    auto first = d.held.lower_bound(addr);
    auto end = d.held.lower_bound(addr + size);
    if (first != end)
      stream = first->second.stream;
    for (auto row = first; row != end; ++row) {
      if (row->second.is_small)
        add(d.stats.reserved_bytes, true,
            -static_cast<int64_t>(row->second.size));
      if (row->second.file >= 0)
        close(row->second.file);
      if (row->second.same) {
        note(next, row->first);
        next = row->first + row->second.size;
        d.doubles--;
      }
    }
    d.held.erase(first, end);
  }
  note(next, addr + size);
}

// Segments of at most small_segment bytes count as the small pool, and so do maps
// of a policy that maps the small pool apart: changed() counts them. All other
// memory is of the large pool.
void Allocator::reserved(int device, uint64_t bytes) {
  Guard guard(lock_);
  Device& d = at(device);
  add(d.stats.reserved_bytes, false,
      static_cast<int64_t>(bytes) + d.below.reserved_bytes[0].current -
          d.stats.reserved_bytes[0].current);
}

/* ---- requests ---- */

// PyTorch announces a capture just before it begins. It does not announce the end
// if the driver refuses the begin or the graph, so the stream is asked. The
// thread that announced the capture calls again only after the begin.
bool is_over(Pool& p) {
  cudaStreamCaptureStatus status;
  if (!p.captures)
    return false;
  p.began = p.began || p.thread == std::this_thread::get_id();
  if (cudaStreamIsCapturing(p.stream, &status) == cudaSuccess &&
      status == cudaStreamCaptureStatusNone)
    return p.began;
  p.began = true;
  return false;
}

// The lock is held.
bool Allocator::captures() {
  auto over = std::stable_partition(pools_.begin(), pools_.end(),
                                    [](Pool& p) { return !is_over(p); });
  std::move(over, pools_.end(), std::back_inserter(over_));
  pools_.erase(over, pools_.end());
  return std::any_of(pools_.begin(), pools_.end(),
                     [](const Pool& p) { return p.captures; });
}

// PyTorch's own allocator ends the process when a MemPool ends during a capture.
void Allocator::end_failed() {
  std::unique_lock<std::recursive_mutex> guard(lock_);
  captures();
  auto over = std::exchange(over_, {});
  for (const Pool& p : over)
    ended_.insert({p.device, p.id});
  guard.unlock();
  for (const Pool& p : over)
    below_->endAllocateToPool(p.device, p.id);
}

// The lock is held.
bool Allocator::below_serves(DeviceIndex device, cudaStream_t stream) {
  if (!below_->isEnabled()) // it asks the driver for each request then
    return true;
  return captures() ||
      std::any_of(pools_.begin(), pools_.end(), [&](const Pool& p) {
        return p.device == device && p.filter(stream);
      });
}

void* Allocator::take_below(DeviceIndex device, size_t size,
                            cudaStream_t stream) {
  limit_below(device);
  void* ptr = below_->raw_alloc_with_stream(size, stream);
  catch_up(device);
  return ptr;
}

void Allocator::set_spare(DeviceIndex device, MempoolId_t pool, bool use) {
  Guard guard(lock_);
  auto& spare = at(device).spare;
  spare.erase(std::remove(spare.begin(), spare.end(), pool), spare.end());
  if (use)
    spare.push_back(pool);
}

bool has_room(const SnapshotInfo& pool, DeviceIndex device, size_t size,
              cudaStream_t stream) {
  for (const SegmentInfo& row : pool.segments)
    if (row.device == device && row.stream == stream &&
        row.is_large == (size > small_block))
      for (const BlockInfo& b : row.blocks)
        if (!b.active && b.size >= size)
          return true;
  return false;
}

// A free block of a MemPool with use_on_oom, or null. As in PyTorch, such a pool
// is the last resort and does not grow for this.
void* Allocator::take_spare(DeviceIndex device, size_t size,
                            cudaStream_t stream) {
  std::vector<MempoolId_t> spare;
  {
    Guard guard(lock_);
    spare = at(device).spare;
  }
  for (MempoolId_t pool : spare) {
    if (!has_room(below_->snapshot(pool, false), device, size, stream))
      continue;
    void* ptr = nullptr;
    std::thread::id self = std::this_thread::get_id();
    below_->beginAllocateToPool(device, pool, [self](cudaStream_t) {
      return std::this_thread::get_id() == self;
    });
    try {
      ptr = take_below(device, size, stream);
    } catch (const c10::OutOfMemoryError&) { // another thread was first
    }
    below_->endAllocateToPool(device, pool);
    below_->releasePool(device, pool); // the begin has counted a user
    if (ptr)
      return ptr;
  }
  return nullptr;
}

// Returns false if PyTorch's own allocator has to serve the request. This is
// decided under the lock of the request: a capture that began while the thread
// waited for the lock would become invalid by calls of the policy.
bool Allocator::take(DeviceIndex device, size_t size, cudaStream_t stream,
                     void** out, frag_torch_answer* answer, char* words) {
  Context context = this->context(RecordContext::STATE);
  frag_service_block got;
  Guard guard(lock_);
  if (below_serves(device, stream))
    return false;
  context_ = context;
  if (!waiting_.empty())
    end_waiting();
  stream_ = stream;
  *answer = frag_torch_serve(device, size, stream, &got, words);
  stream_ = nullptr;
  context_ = nullptr;
  if (*answer != FRAG_TORCH_OK)
    return true;
  Device& d = at(device);
  bool is_small = got.size <= small_block;
  *out = reinterpret_cast<void*>(got.addr);
  add(d.stats.allocation, is_small, 1);
  add(d.stats.active, is_small, 1);
  add(d.stats.allocated_bytes, is_small, got.size);
  add(d.stats.active_bytes, is_small, got.size);
  add(d.stats.requested_bytes, is_small, size);
  Block made{device, false, got.size, size, stream, context};
  auto block = blocks_.insert_or_assign(got.addr, std::move(made)).first;
  note_parts(d, got.addr, block->second, true);
  record(TraceEntry::ALLOC, device, got.addr, size, stream, std::move(context));
  enter_segment(d, block);
  c10::reportMemoryUsageToProfiler(
      *out, static_cast<int64_t>(got.size),
      d.stats.allocated_bytes[0].current, d.stats.reserved_bytes[0].current,
      c10::Device(c10::DeviceType::CUDA, device));
  return true;
}

// Asks the program and PyTorch's own allocator for memory, after the policy
// found none.
bool Allocator::make_room(DeviceIndex device) {
  bool freed = false;
  for (const auto& name : c10::FreeCudaMemoryCallbacksRegistry()->Keys())
    freed |= c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute();
  int64_t held = below_->getDeviceStats(device).reserved_bytes[0].current;
  if (held > 0)
    below_->emptyCache({0, 0});
  std::unique_lock<std::recursive_mutex> guard(lock_);
  // A pool may have ended since, whose memory the limit still counts.
  int64_t before = at(device).below.reserved_bytes[0].current;
  guard.unlock();
  catch_up(device);
  guard.lock();
  at(device).stats.num_alloc_retries++;
  at(device).stats.num_sync_all_streams += held == 0;
  return freed ||
      at(device).below.reserved_bytes[0].current < std::max(held, before);
}

std::string bytes(uint64_t size) {
  std::ostringstream text;
  int power = size >> 30 ? 3 : size >> 20 ? 2 : size >> 10 ? 1 : 0;
  text.precision(2);
  text << std::fixed;
  if (power)
    text << std::ldexp(size, -10 * power) << ' ' << " KMG"[power] << "iB";
  else
    text << size << " bytes";
  return text.str();
}

// The words and numbers of PyTorch's own message; programs parse it.
void Allocator::refuse(DeviceIndex device, size_t size, cudaStream_t stream,
                       const char* words) {
  Context context = this->context(RecordContext::STATE);
  size_t room = 0, total = 0;
  c10::cuda::CUDAGuard on(device);
  C10_CUDA_CHECK(cudaMemGetInfo(&room, &total));
  DeviceStats stats;
  double fraction;
  std::vector<OutOfMemoryObserver> observers;
  {
    Guard guard(lock_);
    Device& d = at(device);
    d.stats.num_ooms++;
    record(TraceEntry::OOM, device, room, size, stream, context);
    stats = d.stats;
    fraction = d.fraction;
    observers = observers_;
  }
  uint64_t allocated = stats.allocated_bytes[0].current;
  uint64_t reserved = stats.reserved_bytes[0].current;
  auto allowed =
      static_cast<uint64_t>(fraction * static_cast<double>(total));
  std::string limit = fraction < 1.0 ? bytes(allowed) + " allowed; " : "";
  for (const auto& observer : observers)
    observer(device, size, fraction < 1.0 ? allowed : total, room);
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ",
      bytes(size), ". GPU ", static_cast<int>(device),
      " has a total capacity of ", bytes(total), " of which ", bytes(room),
      " is free. ", limit, "Of the allocated memory ", bytes(allocated),
      " is allocated by PyTorch, and ",
      bytes(reserved > allocated ? reserved - allocated : 0),
      " is reserved by PyTorch but unallocated. fragsim serves this program "
      "with a policy: ", words);
}

void* Allocator::serve(DeviceIndex device, size_t size, cudaStream_t stream) {
  char words[FRAG_TORCH_WORDS];
  frag_torch_answer answer = FRAG_TORCH_OOM;
  void* ptr = nullptr;

  if (size == 0)
    return nullptr;
  TORCH_CHECK(!forked, "fragsim: this process was forked from one that uses "
              "the GPU; start it by spawn");
  for (int attempt = 0; answer == FRAG_TORCH_OOM && attempt < 2; attempt++) {
    if (attempt && !make_room(device))
      break;
    if (!take(device, size, stream, &ptr, &answer, words))
      return take_below(device, size, stream);
  }
  if (answer == FRAG_TORCH_OOM) {
    if ((ptr = take_spare(device, size, stream)))
      return ptr;
    refuse(device, size, stream, words);
  }
  TORCH_CHECK(answer == FRAG_TORCH_OK, "fragsim: ", words);
  if (const auto* trace = c10::impl::GPUTrace::get_trace())
    (*trace)->trace_gpu_memory_allocation(c10::DeviceType::CUDA,
                                          reinterpret_cast<uintptr_t>(ptr));
  return ptr;
}

c10::DataPtr Allocator::allocate(size_t size) {
  TORCH_CHECK_WITH(OutOfMemoryError, size < (1ull << 60),
                   "CUDA out of memory. Tried to allocate more than 1EB "
                   "memory.");
  if (!below_->isEnabled()) // the free, too, must not depend on a later enable()
    return below_->allocate(size);
  c10::Device device(c10::DeviceType::CUDA, c10::cuda::current_device());
  void* ptr = serve(device.index(), size,
                    c10::cuda::getCurrentCUDAStream(device.index()));
  return {ptr, ptr, &delete_block, device};
}

/* ---- frees ---- */

// Frees a block of the policy; the lock is held. A deleter must not throw. If
// the device fails, the next request throws.
void Allocator::end(Blocks::iterator block) {
  char words[FRAG_TORCH_WORDS];
  const Block& b = block->second;
  switch (frag_torch_end(b.device, block->first, b.stream, words)) {
    case FRAG_TORCH_WAITS:
      return;
    case FRAG_TORCH_OK:
      complete(block);
      return;
    case FRAG_TORCH_OOM: // the driver had no memory for the call
      waiting_.push_back(reinterpret_cast<void*>(block->first));
      return;
    default:
      TORCH_WARN("fragsim: a block could not be freed: ", words);
  }
}

void Allocator::raw_delete(void* ptr) {
  if (!ptr || forked) // the memory is the parent's
    return;
  if (const auto* trace = c10::impl::GPUTrace::get_trace())
    (*trace)->trace_gpu_memory_deallocation(c10::DeviceType::CUDA,
                                            reinterpret_cast<uintptr_t>(ptr));
  Context context = this->context(RecordContext::ALL);
  std::unique_lock<std::recursive_mutex> guard(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(ptr));
  if (found == blocks_.end() || found->second.ended) {
    guard.unlock();
    below_->raw_delete(ptr); // refuses what it does not know either
    return;
  }
  Block& b = found->second;
  Device& d = at(b.device);
  bool is_small = b.size <= small_block;
  b.ended = true;
  add(d.stats.allocation, is_small, -1);
  add(d.stats.allocated_bytes, is_small, -static_cast<int64_t>(b.size));
  record(TraceEntry::FREE_REQUESTED, b.device, reinterpret_cast<uint64_t>(ptr),
         b.requested, b.stream, context ? context : b.context);
  c10::reportMemoryUsageToProfiler(
      ptr, -static_cast<int64_t>(b.size), d.stats.allocated_bytes[0].current,
      d.stats.reserved_bytes[0].current,
      c10::Device(c10::DeviceType::CUDA, b.device));
  context_ = context;
  if (captures())
    waiting_.push_back(ptr);
  else
    end(found);
  context_ = nullptr;
}

void Allocator::recordStream(const c10::DataPtr& ptr,
                             c10::cuda::CUDAStream stream) {
  if (!ptr.get() || ptr.get_deleter() != &delete_block)
    return;
  std::unique_lock<std::recursive_mutex> guard(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(ptr.get()));
  if (found == blocks_.end()) {
    guard.unlock();
    // It recognizes its own blocks by their deleter.
    c10::DataPtr alias(ptr.get(), ptr.get(), below_->raw_deleter(),
                       ptr.device());
    below_->recordStream(alias, stream);
    alias.release_context();
    return;
  }
  const Block& b = found->second;
  if (stream.stream() != b.stream)
    must(frag_torch_use, b.device, found->first, stream.stream());
}

void Allocator::emptyCache(MempoolId_t pool) {
  Context context = this->context(RecordContext::ALL);
  end_failed();
  below_->emptyCache(pool);
  Guard guard(lock_);
  if (captures() || pool != MempoolId_t{0, 0})
    return;
  auto forget = c10::make_scope_exit([&] { context_ = nullptr; });
  context_ = context;
  end_waiting();
  for (size_t i = 0; i < devices_.size(); i++) {
    if (recording_)
      devices_[i].emptied.push_back(c10::getApproximateTime());
    if (devices_[i].emptied.size() > most_)
      devices_[i].emptied.pop_front();
    must(frag_torch_trim, static_cast<int>(i));
  }
}

/* ---- numbers ---- */

void Allocator::cacheInfo(DeviceIndex device, size_t* largest) {
  c10::cuda::CUDAGuard on(device);
  below_->cacheInfo(device, largest);
  Guard guard(lock_);
  for (const SegmentInfo& row : segments())
    for (const BlockInfo& b : row.blocks)
      if (row.device == device && !b.active)
        *largest = std::max(*largest, b.size);
}

void Allocator::setMemoryFraction(double fraction, DeviceIndex device) {
  TORCH_CHECK(0 <= fraction && fraction <= 1, "invalid fraction:", fraction,
              ". Please set within [0, 1].");
  cudaDeviceProp device_has;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&device_has, device));
  below_->setMemoryFraction(fraction, device);
  {
    Guard guard(lock_);
    Device& d = at(device);
    d.fraction = fraction;
    d.total = device_has.totalGlobalMem;
    d.allowed = d.allowed_below = no_limit;
    if (fraction < 1)
      d.allowed = static_cast<uint64_t>(
          fraction * static_cast<double>(d.total));
    must(frag_torch_limit, device, no_limit);
  }
  catch_up(device);
}

// A fraction may be in the environment (per_process_memory_fraction). PyTorch's
// own allocator has read it. With the backend cudaMallocAsync, the question
// would open each device.
void Allocator::learn_fractions(int count) {
  if (below_->name() != "native")
    return;
  for (int i = 0; i < count; i++) {
    auto device = static_cast<DeviceIndex>(i);
    double fraction = below_->getMemoryFraction(device);
    if (fraction < 1)
      setMemoryFraction(fraction, device);
  }
}

// A limit is for the policy and PyTorch's own allocator together: each may have
// what the other does not hold. Here for the policy; the lock is held.
void Allocator::limit_policy(DeviceIndex device) {
  const Device& d = at(device);
  if (d.allowed == no_limit)
    return;
  auto held = static_cast<uint64_t>(d.below.reserved_bytes[0].current);
  must(frag_torch_limit, device, d.allowed - std::min(held, d.allowed));
}

// And for PyTorch's own, which has its limit as a fraction only. To set it, it
// asks for the properties of the device, so this is done after a change.
void Allocator::limit_below(DeviceIndex device) {
  double fraction;
  {
    Guard guard(lock_);
    Device& d = at(device);
    if (d.allowed == no_limit)
      return;
    auto held = static_cast<uint64_t>(d.stats.reserved_bytes[0].current -
                                      d.below.reserved_bytes[0].current);
    uint64_t left = d.allowed - std::min(held, d.allowed);
    if (left == d.allowed_below)
      return;
    d.allowed_below = left;
    // Half a byte more, since PyTorch rounds the product down.
    fraction = (static_cast<double>(left) + 0.5) / static_cast<double>(d.total);
  }
  below_->setMemoryFraction(fraction, device);
}

void* Allocator::getBaseAllocation(void* ptr, size_t* size) {
  std::unique_lock<std::recursive_mutex> guard(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(ptr));
  if (found == blocks_.end()) {
    guard.unlock();
    return below_->getBaseAllocation(ptr, size);
  }
  auto over = around(at(found->second.device), found->first);
  if (over->second.mapped) { // a block may lie in many maps
    if (size)
      *size = found->second.size;
    return ptr;
  }
  if (size)
    *size = over->second.size;
  return reinterpret_cast<void*>(over->first);
}

/* ---- snapshots ---- */

// Removes [from, to), which is a part of one row.
void hide(std::map<uint64_t, Shown>& rows, uint64_t from, uint64_t to) {
  auto at = rows.upper_bound(from);
  if (at == rows.begin() || (--at)->second.end < to)
    return;
  Shown old = at->second;
  at->second.end = from;
  if (at->first == from)
    rows.erase(at);
  if (to < old.end)
    rows[to] = old;
}

// The held ranges by address, with every byte of memory once: memory of two
// addresses is shown where a block uses it.
std::map<uint64_t, Shown> shown(const Device& d, const Blocks& blocks) {
  std::map<uint64_t, Shown> rows;
  for (const auto& [addr, held] : d.held)
    if (!held.same)
      rows[addr] = Shown{addr + held.size, &held};
  for (const auto& [addr, held] : d.held) {
    if (!held.same)
      continue;
    auto b = blocks.upper_bound(addr);
    if (b != blocks.begin())
      --b;
    for (; b != blocks.end() && b->first < addr + held.size; ++b) {
      uint64_t from = std::max(addr, b->first);
      uint64_t to = std::min(addr + held.size, b->first + b->second.size);
      if (from >= to)
        continue;
      hide(rows, held.same + (from - addr), held.same + (to - addr));
      rows[from] = Shown{to, &held};
    }
  }
  return rows;
}

// Joins maps that touch each other to one segment, as PyTorch shows them.
std::vector<SegmentInfo> held_of(const std::map<uint64_t, Shown>& shown,
                                 DeviceIndex device) {
  std::vector<SegmentInfo> rows;
  for (const auto& [addr, part] : shown) {
    const Held& held = *part.held;
    if (held.mapped && !rows.empty() && rows.back().is_expandable &&
        rows.back().is_large == !held.is_small &&
        rows.back().address + rows.back().total_size == addr) {
      rows.back().total_size += part.end - addr;
      continue;
    }
    SegmentInfo row;
    row.device = device;
    row.address = addr;
    row.total_size = part.end - addr;
    row.is_large = !held.is_small;
    row.is_expandable = held.mapped;
    row.stream = held.stream;
    rows.push_back(row);
  }
  return rows;
}

void add_free(SegmentInfo& row, uint64_t from, uint64_t to) {
  if (from >= to)
    return;
  BlockInfo gap;
  gap.size = to - from;
  row.blocks.push_back(gap);
}

std::vector<SegmentInfo> Allocator::segments() {
  std::vector<SegmentInfo> all;
  for (size_t i = 0; i < devices_.size(); i++)
    for (SegmentInfo& row : held_of(shown(devices_[i], blocks_),
                                     static_cast<DeviceIndex>(i))) {
      uint64_t next = row.address, end = row.address + row.total_size;
      auto at = blocks_.lower_bound(next);
      for (; at != blocks_.end() && at->first < end; ++at) {
        const Block& b = at->second;
        BlockInfo info;
        add_free(row, next, at->first);
        info.size = b.size;
        info.requested_size = b.requested;
        info.allocated = !b.ended;
        info.active = true;
        info.context_when_allocated = b.context;
        row.blocks.push_back(info);
        row.active_size += b.size;
        row.allocated_size += b.ended ? 0 : b.size;
        row.requested_size += b.requested;
        next = at->first + b.size;
      }
      add_free(row, next, end);
      all.push_back(std::move(row));
    }
  return all;
}

// Says in the snapshot which policy the device's memory is from, and when the
// program called empty_cache: a policy returns memory at other times too.
void Allocator::annotate(SnapshotInfo& info, DeviceIndex device) {
  auto to_ns = clock_.makeConverter();
  auto add = [&](const char* stage, const char* name, int64_t us) {
    AnnotationEntry entry(device, 0);
    entry.time_.t_ = us;
    entry.recordUserMetadata("stage", stage);
    entry.recordUserMetadata("name", name);
    info.external_annotations.push_back(std::move(entry));
  };
  add("fragsim: policy", policy_.c_str(), 0);
  for (c10::approx_time_t time : at(device).emptied)
    add("fragsim: cache emptied", "", to_ns(time) / 1000);
}

SnapshotInfo Allocator::snapshot(MempoolId_t pool, bool include_traces) {
  SnapshotInfo info = below_->snapshot(pool, include_traces);
  if (pool != MempoolId_t{0, 0})
    return info;
  Guard guard(lock_);
  for (SegmentInfo& row : segments())
    info.segments.push_back(std::move(row));
  std::sort(info.segments.begin(), info.segments.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) {
              return a.address < b.address;
            });
  if (!include_traces)
    return info;
  auto to_ns = clock_.makeConverter();
  if (info.device_traces.size() < devices_.size())
    info.device_traces.resize(devices_.size());
  for (size_t i = 0; i < devices_.size(); i++) {
    auto& trace = info.device_traces[i];
    annotate(info, static_cast<DeviceIndex>(i));
    // PyTorch's own allocator has converted its times already.
    trace.erase(std::remove_if(trace.begin(), trace.end(),
                               [](const TraceEntry& e) {
                                 return e.action_ == TraceEntry::SNAPSHOT;
                               }),
                trace.end());
    for (TraceEntry entry : devices_[i].history) {
      entry.time_.t_ = to_ns(entry.time_.approx_t_) / 1000;
      trace.push_back(std::move(entry));
    }
    std::stable_sort(trace.begin(), trace.end(),
                     [](const TraceEntry& a, const TraceEntry& b) {
                       return a.time_.t_ < b.time_.t_;
                     });
    // As in PyTorch, the next snapshot has the entry of this one.
    record(TraceEntry::SNAPSHOT, static_cast<DeviceIndex>(i), 0,
           devices_[i].stats.active_bytes[0].current, nullptr, nullptr);
  }
  return info;
}

/* ---- pools ---- */

// A graph's filter is a function of the class CUDAGraph. It cannot be told from
// a MemPool's in another way before the capture begins.
bool is_capture(const std::function<bool(cudaStream_t)>& filter) {
  return std::string(filter.target_type().name()).find("CUDAGraph") !=
      std::string::npos;
}

void Allocator::beginAllocateToPool(DeviceIndex device, MempoolId_t pool,
                                    std::function<bool(cudaStream_t)> filter) {
  end_failed();
  below_->beginAllocateToPool(device, pool, filter);
  Guard guard(lock_);
  bool captures = is_capture(filter);
  ended_.erase({device, pool});
  pools_.push_back(Pool{device, pool, captures, std::move(filter),
                        c10::cuda::getCurrentCUDAStream(device),
                        std::this_thread::get_id()});
}

// The frees in waiting_, unless there is a capture; the lock is held.
void Allocator::end_waiting() {
  if (captures())
    return;
  for (void* ptr : std::exchange(waiting_, {})) {
    auto found = blocks_.find(reinterpret_cast<uint64_t>(ptr));
    if (found != blocks_.end())
      end(found);
  }
}

void Allocator::endAllocateToPool(DeviceIndex device, MempoolId_t pool) {
  std::unique_lock<std::recursive_mutex> guard(lock_);
  for (auto* pools : {&pools_, &over_}) {
    auto ended = std::find_if(pools->begin(), pools->end(), [&](const Pool& p) {
      return p.device == device && p.id == pool;
    });
    if (ended != pools->end())
      pools->erase(ended);
  }
  // Another thread may find a capture over just before its end is announced.
  bool told = ended_.erase({device, pool});
  guard.unlock();
  if (!told)
    below_->endAllocateToPool(device, pool);
  catch_up(device);
  guard.lock();
  end_waiting();
}

CheckpointDelta Allocator::setCheckpointPoolState(
    DeviceIndex device, std::shared_ptr<AllocatorState> state) {
  CheckpointDelta delta =
      below_->setCheckpointPoolState(device, std::move(state));
  // The program compares the deleter with raw_deleter().
  for (c10::DataPtr& ptr : delta.dataptrs_allocd) {
    void* at = ptr.get();
    ptr.release_context();
    ptr = c10::DataPtr(at, at, &delete_block, ptr.device());
  }
  catch_up(device);
  return delta;
}

/* ---- other processes and other devices ---- */

// The first two bytes of a handle. PyTorch's own allocator reads the first two
// kinds: a segment (cudaMalloc), and maps of equal sizes.
constexpr char handle_version = 2, of_segment = 'c', of_equal_maps = 'e',
               of_maps = 'f';

// Memory of another process. PyTorch's format: the header, and a file
// descriptor of each map. With maps of several sizes, map_size is 0 and the
// sizes follow.
struct SharedMaps {
  pid_t process;
  size_t map_size, count;
};

template <typename T>
void put(std::string& text, const T* from, size_t count) {
  text.append(reinterpret_cast<const char*>(from), count * sizeof(T));
}

// Reads at `at` and advances it.
template <typename T>
void get(const std::string& text, size_t& at, T* to, size_t count) {
  TORCH_CHECK(count <= (text.size() - at) / sizeof(T),
              "fragsim: a handle of another process is cut off");
  std::memcpy(to, text.data() + at, count * sizeof(T));
  at += count * sizeof(T);
}

int export_map(DeviceIndex device, uint64_t map) {
  char words[FRAG_TORCH_WORDS] = "";
  int file;
  TORCH_CHECK(
      frag_torch_export(device, map, &file, words) == FRAG_TORCH_OK,
      "fragsim: the policy maps its memory, and this memory cannot be shared "
      "with another process: ", words, ". The tensor is unchanged. Raise the "
      "number of open files (ulimit -n) if that is the reason, or allocate the "
      "tensor inside `with torch.cuda.use_mem_pool(torch.cuda.MemPool()):`, or "
      "select a policy without maps (FRAGSIM_POLICY=torch).");
  return file;
}

// Shares the maps of a block. They stay as long as the block is live, since a
// policy of a busy device moves no live block.
ShareableHandle Allocator::share_maps(DeviceIndex device, uint64_t addr,
                                      size_t size) {
  std::vector<size_t> sizes;
  std::vector<int> files;
  std::vector<int*> made;
  auto first = around(at(device), addr);
  auto end = at(device).held.lower_bound(addr + size);
  try {
    for (auto map = first; map != end; ++map) {
      int& file = map->second.file;
      if (file < 0) {
        file = export_map(device, map->first);
        made.push_back(&file);
      }
      sizes.push_back(map->second.size);
      files.push_back(file);
    }
  } catch (...) { // a process needs files for other things too
    for (int* file : made)
      close(std::exchange(*file, -1));
    throw;
  }
  bool equal = std::adjacent_find(sizes.begin(), sizes.end(),
                                  std::not_equal_to<size_t>()) == sizes.end();
  SharedMaps header{};
  header.process = getpid();
  header.map_size = equal ? sizes[0] : 0;
  header.count = sizes.size();
  std::string text{handle_version, equal ? of_equal_maps : of_maps};
  put(text, &header, 1);
  put(text, files.data(), files.size());
  if (!equal)
    put(text, sizes.data(), sizes.size());
  return {static_cast<ptrdiff_t>(addr - first->first), text};
}

std::shared_ptr<void> Allocator::getIpcDevPtr(std::string handle) {
  if (handle.size() < 2 || handle[1] != of_maps)
    return below_->getIpcDevPtr(std::move(handle));
  Guard guard(lock_);
  auto found = imported_.find(handle);
  if (found != imported_.end())
    if (auto known = found->second.lock())
      return known;
  char words[FRAG_TORCH_WORDS] = "";
  DeviceIndex device = c10::cuda::current_device();
  SharedMaps header;
  size_t next = 2;
  get(handle, next, &header, 1);
  TORCH_CHECK(header.count <= handle.size(),
              "fragsim: a handle of another process is cut off");
  std::vector<int> files(header.count);
  std::vector<uint64_t> sizes(header.count);
  get(handle, next, files.data(), header.count);
  get(handle, next, sizes.data(), header.count);
  uint64_t addr, size = std::accumulate(sizes.begin(), sizes.end(), uint64_t{});
  TORCH_CHECK(
      frag_torch_import(device, header.process, sizes.data(), files.data(),
                        header.count, &addr, words) == FRAG_TORCH_OK,
      "fragsim: a tensor of process ", header.process,
      " cannot be mapped here: ", words);
  std::shared_ptr<void> made(
      reinterpret_cast<void*>(addr), [this, device, size, handle](void* ptr) {
        char words[FRAG_TORCH_WORDS] = "";
        if (forked)
          return;
        Guard guard(lock_);
        auto mine = imported_.find(handle);
        if (mine != imported_.end() && mine->second.expired())
          imported_.erase(mine);
        if (frag_torch_forget(device, reinterpret_cast<uint64_t>(ptr), size,
                              words) != FRAG_TORCH_OK)
          TORCH_WARN("fragsim: memory of another process stays mapped: ",
                     words);
      });
  imported_[handle] = made;
  return made;
}

ShareableHandle Allocator::shareIpcHandle(void* ptr) {
  std::unique_lock<std::recursive_mutex> guard(lock_);
  auto found = blocks_.find(reinterpret_cast<uint64_t>(ptr));
  if (found == blocks_.end()) {
    guard.unlock();
    return below_->shareIpcHandle(ptr);
  }
  auto over = around(at(found->second.device), found->first);
  if (over->second.mapped)
    return share_maps(found->second.device, found->first, found->second.size);
  cudaIpcMemHandle_t handle;
  C10_CUDA_CHECK(
      cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(over->first)));
  // PyTorch's format: the version, the kind (cudaMalloc), the driver's handle.
  std::string text{handle_version, of_segment};
  put(text, &handle, 1);
  return {static_cast<ptrdiff_t>(reinterpret_cast<uint64_t>(ptr) - over->first),
          text};
}

/* ---- the start ---- */

void Allocator::install(const std::string& policy) {
  Guard guard(lock_);
  if (below_)
    return;
  policy_ = policy;
  small_maps_ = policy.compare(0, 5, "torch") == 0;
  static const frag_torch_listener listener = {
      [](int, uint64_t addr) { instance().freed(addr); },
      [](int device, frag_torch_change change, uint64_t addr, uint64_t size,
         uint64_t same) {
        instance().changed(device, change, addr, size, same);
      },
      [](int device, uint64_t bytes) { instance().reserved(device, bytes); }};
  frag_torch_listen(&listener);
  // PyTorch may start in a child if it had not started before the fork.
  pthread_atfork(nullptr, nullptr,
                 [] { forked = forked || instance().initialized(); });
  below_ = c10::cuda::CUDACachingAllocator::get();
  // Blocks that PyTorch allocated before are still freed by its own allocator.
  c10::cuda::CUDACachingAllocator::allocator.store(this);
  c10::SetAllocator(c10::DeviceType::CUDA, this);
  if (below_->initialized())
    learn_fractions(c10::cuda::device_count());
}

} // namespace

[[noreturn]] __attribute__((noinline)) static void throw_test() {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "a test");
}

// 1 if an exception of PyTorch passes through this file. Some compilers make
// code in which it ends the process.
extern "C" FRAG_TORCH_API int frag_torch_probe() {
  try {
    throw_test();
  } catch (const c10::OutOfMemoryError& e) {
    return e.msg().find("a test") != std::string::npos;
  }
  return 0;
}

// Lets the policy serve all requests from here on, "" or what is wrong.
extern "C" FRAG_TORCH_API const char* frag_torch_install() {
  static char words[FRAG_TORCH_WORDS];
  const char* policy = frag_torch_policy(words);
  if (!policy)
    return words;
  Allocator::instance().install(policy);
  return "";
}
