// CPU models of barriers in shared memory, of the copy engine and of clusters.
//
// A bulk copy runs while some thread waits at a barrier in memory: newest first with seed 0; by seed as late as possible, at
// once, or at any time, so that a kernel that reads too early or refills too early is seen. A store reads its tile when its
// thread waits for its group, or by seed when it commits it. Descriptors are decoded here from their 128 raw bytes,
// independently of the Python models: box walk, row pitch at the swizzle span, XOR on absolute shared addresses, fill,
// element strides, byte counts. A cp.async runs when its thread waits for its group, before its arrival at a barrier, which
// comes when a load could, or by seed at once.
#pragma once

namespace la_host {

void init_barrier(la_u32 address, la_u32 count);
void arrive(la_u32 address, la_u32 n, la_u32 bytes, unsigned line);
void arrive_remote(la_u32 address, la_u32 rank, unsigned line);
void expect(la_u32 address, la_u32 bytes, unsigned line);
bool wait_parity(la_u32 address, la_u32 parity, unsigned line);
void start_load(Copy copy);
void start_store(Copy copy);
void commit_stores();
void finish_stores(la_u32 last, bool newest);  // of this thread, up to a group
void start_async(la_u32 shared, const void* source, la_u32 bytes, la_u32 filled, unsigned line);
void commit_asyncs();
void finish_asyncs(la_u32 pending, unsigned line);
void arrive_async(la_u32 barrier, unsigned line);
void cluster_arrive(unsigned line);
void cluster_wait(unsigned line);

#ifdef LA_HOST_CORE

unsigned char* global_bytes(la_u64 address, la_u32 bytes)
{
    unsigned char* pointer = (unsigned char*)(uintptr_t)address;
    for (const Region& region : here->run->regions)
        if (pointer >= region.first && pointer + bytes <= region.first + region.bytes) return pointer;
    fault(GLOBAL_RANGE);
    return nullptr;
}

// ---------------------------------------------------------------------------------------------------------- barriers

// Faults with the barrier, how many arrivals were meant and how many are pending.
void misused(Fault code, la_u32 address, la_u32 arrivals, la_u32 pending)
{
    Detail detail = about(0);
    detail.barrier = address - here->dynamic_first;
    detail.arrivals = arrivals;
    detail.pending = pending;
    fault(code, detail);
}

Barrier& barrier_at(la_u32 address)
{
    for (Barrier& barrier : here->barriers)
        if (barrier.address == address) return barrier;
    misused(BARRIER_MISUSE, address, 0, 0);
    return here->barriers.items[0];
}

inline void settle(Barrier& barrier)
{
    ++here->run->progress;
    if (barrier.bytes > 1048575 || barrier.bytes < -1048575) misused(TRANSACTION_RANGE, barrier.address, 0, barrier.pending);
    if (barrier.pending == 0 && barrier.bytes == 0) { barrier.pending = barrier.count; ++barrier.phase; }
}

void arrive(la_u32 address, la_u32 n, la_u32 bytes, unsigned line)
{
    here->current->line = line;
    interrupt();
    Barrier& barrier = barrier_at(address);
    barrier.bytes += bytes;
    if (n == 0 || n > barrier.pending) misused(BARRIER_MISUSE, address, n, barrier.pending);
    barrier.pending -= n;
    settle(barrier);
    interrupt();
}

// ------------------------------------------------------------------------------------------------------- descriptors

struct Descriptor {
    la_u64 base, dim[5], stride[5];
    la_u32 box[5], step[5], element, span;
    int rank, format;
    bool nan_fill, tf32;
};

Descriptor decode(const la_tensor_map* map)
{
    static const int sizes[16] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 0, 0, 0, 0, 0};
    la_u32 w[32];
    std::memcpy(w, map, sizeof w);
    Descriptor d = {};
    d.base = (la_u64)w[1] << 32 | w[0];
    d.rank = (int)(w[2] >> 4 & 7) + 1;
    d.format = w[2] >> 7 & 15;
    d.element = sizes[d.format];
    d.span = (w[2] >> 13 & 3) ? 16u << (w[2] >> 13 & 3) : 0;
    d.nan_fill = w[2] >> 15 & 1;
    d.tf32 = w[2] >> 16 & 1;
    if ((w[2] & 1) || (w[2] >> 11 & 3) || d.rank > 5 || d.element == 0) fault(BAD_DESCRIPTOR);
    for (int i = 0; i < 5; ++i) {
        d.dim[i] = (la_u64)w[8 + i] + 1;
        d.step[i] = (w[13] >> 3 * i & 7) + 1;
        d.box[i] = (i == 0 ? w[13] >> 24 : w[14] >> 8 * (i - 1) & 255) + 1;
        d.stride[i] = i == 0 ? d.element : ((la_u64)(w[7] >> 4 * (i - 1) & 15) << 32 | w[2 + i]) << 4;
    }
    return d;
}

// The value a load delivers: tf32 rounds to nearest even and maps every NaN to a canonical NaN. The flush-to-zero types
// were measured to deliver denormals unchanged.
inline la_u64 converted(const Descriptor& d, la_u64 bits)
{
    if (!d.tf32) return bits;
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFFE000;
    return (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000;
}

// The box of a copy: elements per dimension, bytes from row to row, where the inner dimension ends.
struct Box { Descriptor d; la_u32 n[5], pitch; la_u64 inner_limit; };

// A run of bytes has no descriptor: rank 0, its address in the first two coordinates, its bytes in the third.
Box run_of(const Copy& copy)
{
    Box box = {};
    const la_u32 bytes = (la_u32)copy.coords[2];
    box.d.base = (la_u64)(la_u32)copy.coords[1] << 32 | (la_u32)copy.coords[0];
    if (box.d.base % 16 || copy.shared % 16 || bytes % 16 || bytes == 0) fault(MISALIGNED, copy.shared);
    box.d.rank = 1;
    box.d.element = 8;
    box.d.dim[0] = box.inner_limit = box.n[0] = bytes / 8;
    for (int i = 1; i < 5; ++i) box.n[i] = 1;
    return box;
}

Box box_of(const Copy& copy)
{
    if (copy.rank == 0) return run_of(copy);
    Box box = {decode(copy.map), {}, 0, 0};
    const Descriptor& d = box.d;
    if (d.rank != copy.rank) fault(BAD_DESCRIPTOR);
    if (copy.shared % 128) fault(SHARED_ALIGNMENT);
    if ((long long)copy.coords[0] * d.element % 16) fault(INNER_COORDINATE);
    for (int i = 0; i < d.rank; ++i) {
        if (!copy.load && copy.coords[i] < 0) fault(NEGATIVE_STORE);
        if (d.dim[i] > 1ull << 31) fault(LARGE_DIMENSION);
    }
    // A store rounds the inner extent up to whole 16-byte chunks and writes past the tensor there.
    box.inner_limit = copy.load ? d.dim[0] : (d.dim[0] * d.element + 15) / 16 * 16 / d.element;
    for (int i = 0; i < 5; ++i) box.n[i] = i == 0 ? d.box[0] : 1;  // mode 0 ignores its element stride
    for (int i = 1; i < d.rank; ++i) box.n[i] = (d.box[i] + d.step[i] - 1) / d.step[i];
    box.pitch = d.span ? d.span : box.n[0] * d.element;
    return box;
}

// At most 16 bytes of a row: where in shared memory, the first element's number in the row, the global address of the
// row's coordinate 0.
struct Chunk { la_u32 where, bytes, first; bool inside; la_u64 row; };

void walk(const Box& box, const Copy& copy, void (*visit)(const Box&, const Copy&, const Chunk&))
{
    const Descriptor& d = box.d;
    const la_u32 bytes = box.n[0] * d.element, rows = box.n[1] * box.n[2] * box.n[3] * box.n[4];
    for (la_u32 row = 0; row < rows; ++row) {
        Chunk chunk = {0, 0, 0, true, d.base};
        la_u32 rest = row;
        for (int j = 1; j < d.rank; ++j) {
            const long long x = (long long)copy.coords[j] + (long long)(rest % box.n[j]) * d.step[j];
            rest /= box.n[j];
            chunk.inside = chunk.inside && x >= 0 && (la_u64)x < d.dim[j];
            chunk.row += (la_u64)x * d.stride[j];
        }
        for (la_u32 at = 0; at < bytes; at += 16) {
            chunk.where = copy.shared + row * box.pitch + at;
            if (d.span) chunk.where ^= (chunk.where >> 7 & (d.span / 16 - 1)) << 4;
            chunk.bytes = bytes - at < 16 ? bytes - at : 16;
            chunk.first = at / d.element;
            shared_bytes(chunk.where, chunk.bytes);
            visit(box, copy, chunk);
        }
    }
}

// What a copy does to a granule when it starts: nothing in flight may mind, ordinary accesses before it are fenced.
void start_granule(const Copy& copy, la_u32 g)
{
    State& s = *here;
    Granule& granule = s.granules[g];
    const la_u32 barrier = copy.load ? copy.barrier : NOWHERE;
    undisturbed(granule, 16 * g, copy.load, barrier);
    const bool written = write_unfenced(s, granule);
    const bool read = copy.load && granule.read && unfenced(s, granule.reader, granule.read_fences);
    if (written || read) not_fenced(16 * g, written ? granule.writer : granule.reader, barrier);
    if (copy.load) { ++granule.loads; granule.loader = copy.thread; granule.load_barrier = copy.barrier; }
    else { ++granule.stores; granule.user = copy.thread; }
}

inline void start_chunk(const Box&, const Copy& copy, const Chunk& chunk)
{
    for (la_u32 g = chunk.where / 16; g <= (chunk.where + chunk.bytes - 1) / 16; ++g) start_granule(copy, g);
}

inline void run_chunk(const Box& box, const Copy& copy, const Chunk& chunk)
{
    const Descriptor& d = box.d;
    unsigned char* local = here->arena + chunk.where;
    if (copy.load)
        for (const Barrier& barrier : here->barriers)
            if (chunk.where < barrier.address + 8 && barrier.address < chunk.where + chunk.bytes)
                misused(BARRIER_OVERWRITTEN, barrier.address, 0, 0);
    for (la_u32 e = 0; e < chunk.bytes / d.element; ++e, local += d.element) {
        const long long x = (copy.rank ? (long long)copy.coords[0] : 0) + chunk.first + e;
        const bool inside = chunk.inside && x >= 0 && (la_u64)x < box.inner_limit;
        unsigned char* global = inside ? global_bytes(chunk.row + (la_u64)x * d.element, d.element) : nullptr;
        if (!copy.load) {
            if (inside) std::memcpy(global, local, d.element);
            continue;
        }
        la_u64 bits = inside || !d.nan_fill ? 0 : 0x7FF77FF77FF77FF7ull;
        if (inside) std::memcpy(&bits, global, d.element);
        if (inside) bits = converted(d, bits);
        std::memcpy(local, &bits, d.element);
    }
    for (la_u32 g = chunk.where / 16; g <= (chunk.where + chunk.bytes - 1) / 16; ++g) {
        Granule& granule = here->granules[g];
        if (copy.load) { --granule.loads; granule.written = granule.read = granule.copied = false; }
        else --granule.stores;
    }
}

// Calls work(box, copy) with `here` in turn at every block that a load writes to; a store is of its own block.
inline void in_blocks(const Box& box, const Copy& copy, void (*work)(const Box&, const Copy&))
{
    State* const mine = here;
    for (unsigned r = 0; r < mine->run->cluster; ++r)
        if (copy.load ? copy.blocks >> r & 1 : r == mine->rank) {
            here = &mine->run->states[r];
            work(box, copy);
        }
    here = mine;
}

inline void start_block_part(const Box& box, const Copy& copy)
{
    if (!live(*here)) fault(CLUSTER_RANK);
    walk(box, copy, start_chunk);
}

inline void run_block_part(const Box& box, const Copy& copy)
{
    walk(box, copy, run_chunk);
    if (!copy.load) return;
    Barrier& barrier = barrier_at(copy.barrier);
    barrier.bytes -= (long long)box.n[0] * box.n[1] * box.n[2] * box.n[3] * box.n[4] * box.d.element;
    settle(barrier);
}

// A copy from shared memory reads its source as a store does, and arrives like a load; `from` is the block that it reads.
void start_exchange(const Copy& copy)
{
    if (copy.shared % 16 || copy.source % 16 || copy.bytes % 16) fault(SHARED_ALIGNMENT);
    if (!live(*here)) fault(CLUSTER_RANK);
    State* const mine = here;
    Copy half = copy;
    half.load = false;
    shared_bytes(copy.source, copy.bytes);
    for (la_u32 g = copy.source / 16; g < (copy.source + copy.bytes) / 16; ++g) start_granule(half, g);
    for (unsigned r = 0; r < mine->run->cluster; ++r)
        if (copy.blocks >> r & 1) {
            here = &mine->run->states[r];
            if (!live(*here)) fault(CLUSTER_RANK);
            shared_bytes(copy.shared, copy.bytes);
            for (la_u32 g = copy.shared / 16; g < (copy.shared + copy.bytes) / 16; ++g) start_granule(copy, g);
        }
    here = mine;
}

void run_exchange(const Copy& copy)
{
    State* const mine = here;
    for (unsigned r = 0; r < mine->run->cluster; ++r) {
        if (!(copy.blocks >> r & 1)) continue;
        here = &mine->run->states[r];
        for (const Barrier& barrier : here->barriers)
            if (copy.shared < barrier.address + 8 && barrier.address < copy.shared + copy.bytes)
                misused(BARRIER_OVERWRITTEN, barrier.address, 0, 0);
        std::memcpy(here->arena + copy.shared, mine->arena + copy.source, copy.bytes);
        for (la_u32 g = copy.shared / 16; g < (copy.shared + copy.bytes) / 16; ++g) {
            Granule& granule = here->granules[g];
            --granule.loads;
            granule.written = granule.read = granule.copied = false;
        }
        Barrier& barrier = barrier_at(copy.barrier);
        barrier.bytes -= copy.bytes;
        settle(barrier);
    }
    here = mine;
    for (la_u32 g = copy.source / 16; g < (copy.source + copy.bytes) / 16; ++g) --here->granules[g].stores;
}

// Runs one copy; its faults are those of the thread that started it.
void run_copy(const Copy& copy)
{
    Fiber& running = *here->run->running;
    Fiber* const issuer = &here->fibers.items[copy.thread];
    here->run->running = issuer;
    const unsigned line = issuer->line;
    issuer->line = copy.line;
    if (copy.bytes) run_exchange(copy);
    else in_blocks(box_of(copy), copy, run_block_part);
    issuer->line = line;
    here->run->running = &running;
    ++here->run->progress;
}

// ---------------------------------------------------------------------------------------------- copies of one thread

// Runs a copy, or an arrival, whose faults are those of its thread.
void run_async(const Async& one)
{
    Fiber& running = *here->run->running;
    Fiber* const issuer = &here->fibers.items[one.thread];
    here->run->running = issuer;
    const unsigned line = issuer->line;
    issuer->line = one.line;
    if (one.barrier != NOWHERE) {
        Barrier& barrier = barrier_at(one.barrier);
        if (barrier.pending == 0) misused(BARRIER_MISUSE, one.barrier, 1, 0);
        --barrier.pending;
        --here->run->queued;
        settle(barrier);
    } else {
        std::memset(here->arena + one.shared, 0, one.bytes);
        std::memcpy(here->arena + one.shared, one.source, one.filled);
        Granule& granule = here->granules[one.shared / 16];
        granule.copies &= ~words_of(one.shared, one.bytes);
        granule.written = granule.copied = true;
        granule.read = false;
        granule.writer = (unsigned short)one.thread;
        granule.write_fences = here->fences;
    }
    issuer->line = line;
    here->run->running = &running;
    ++here->run->progress;
}

// Runs what a thread has started: the groups up to `last`, or everything before a place of the list.
void run_asyncs(la_u32 thread, la_u32 last, int before)
{
    List<Async, MAX_ASYNCS>& list = here->asyncs;
    int kept = 0;
    for (int i = 0; i < list.size; ++i) {
        const Async one = list.items[i];
        const bool copy = one.barrier == NOWHERE;
        if (one.thread == thread && (i <= before || (copy && one.group && one.group <= last))) run_async(one);
        else list.items[kept++] = one;
    }
    list.size = kept;
}

void start_async(la_u32 shared, const void* source, la_u32 bytes, la_u32 filled, unsigned line)
{
    State& s = *here;
    Run& run = *s.run;
    s.current->line = line;
    interrupt(8);
    if (shared % bytes || (uintptr_t)source % bytes) fault(MISALIGNED, shared - s.dynamic_first);
    if (filled > bytes) fault(GLOBAL_RANGE);
    shared_bytes(shared, bytes);
    for (const Barrier& barrier : s.barriers)
        if (shared < barrier.address + 8 && barrier.address < shared + bytes) misused(BARRIER_OVERWRITTEN, barrier.address, 0, 0);
    if (filled) global_bytes((la_u64)(uintptr_t)source, filled);
    Granule& granule = s.granules[shared / 16];
    const unsigned words = words_of(shared, bytes);
    undisturbed(granule, shared, true, NOWHERE, words);
    granule.copies |= words;
    granule.loader = (unsigned short)s.current->thread.x;
    const Async one = {s.current->thread.x, 0, NOWHERE, shared, bytes, filled, line, source};
    if ((run.engine == EARLY && draw(4)) || (run.engine == ANY_TIME && !draw(8))) run_async(one);
    else append(s.asyncs, one);
}

void commit_asyncs()
{
    Fiber& fiber = *here->current;
    ++fiber.async_groups;
    for (Async& one : here->asyncs)
        if (one.thread == fiber.thread.x && !one.group) one.group = fiber.async_groups;
    interrupt();
}

// Later groups stay in flight, so that reading them too early shows.
void finish_asyncs(la_u32 pending, unsigned line)
{
    Fiber& fiber = *here->current;
    fiber.line = line;
    yield();  // let the other threads run first
    if (fiber.async_groups > pending) run_asyncs(fiber.thread.x, fiber.async_groups - pending, -1);
    interrupt();
}

void arrive_async(la_u32 barrier, unsigned line)
{
    State& s = *here;
    s.current->line = line;
    interrupt();
    barrier_at(barrier);
    append(s.asyncs, {s.current->thread.x, 0, barrier, 0, 0, 0, line, nullptr});
    ++s.run->queued;
    if ((s.run->engine == EARLY && draw(4)) || (s.run->engine == ANY_TIME && !draw(4)))
        run_asyncs(s.current->thread.x, 0, s.asyncs.size - 1);
    interrupt();
}

// Runs an arrival of this block, of the newest or a drawn one, with the copies that it waits for.
bool run_arrival()
{
    List<Async, MAX_ASYNCS>& list = here->asyncs;
    int which = -1;
    la_u32 arrivals = 0;
    for (int i = 0; i < list.size; ++i)
        if (list.items[i].barrier != NOWHERE && (!here->run->seed || !draw(++arrivals))) which = i;
    if (which >= 0) run_asyncs(list.items[which].thread, 0, which);
    return which >= 0;
}

// Runs one load of this block, else of another of the cluster.
void engine_step()
{
    State* const mine = here;
    Run& run = *mine->run;
    run.forced = false;
    for (unsigned i = 0; i < run.cluster; ++i) {
        here = &run.states[(mine->rank + i) % run.cluster];
        if (here->asyncs.size && (!here->queue.size || !run.seed || draw(2)) && run_arrival()) break;
        if (!here->queue.size) continue;
        const int which = run.seed ? (int)draw(here->queue.size) : here->queue.size - 1;
        const Copy copy = here->queue.items[which];
        here->queue.remove(which);
        --run.queued;
        run_copy(copy);
        break;
    }
    here = mine;
}

void start_load(Copy copy)
{
    State& s = *here;
    Run& run = *s.run;
    copy.thread = s.current->thread.x;
    s.current->line = copy.line;
    interrupt();
    if (copy.blocks == 0 || copy.blocks >> run.cluster) fault(CLUSTER_RANK);
    if (copy.bytes) start_exchange(copy);
    else in_blocks(box_of(copy), copy, start_block_part);
    if ((run.engine == EARLY && draw(4)) || (run.engine == ANY_TIME && !draw(8))) run_copy(copy);
    else { append(s.queue, copy); ++run.queued; }
    interrupt();
}

void start_store(Copy copy)
{
    copy.thread = here->current->thread.x;
    here->current->line = copy.line;
    interrupt();
    in_blocks(box_of(copy), copy, start_block_part);
    append(here->stores, copy);
}

// Runs the stores of this thread whose group is at most `last`, oldest first, or newest first.
void finish_stores(la_u32 last, bool newest)
{
    List<Copy, MAX_COPIES>& list = here->stores;
    const la_u32 thread = here->current->thread.x;
    for (int i = newest ? list.size - 1 : 0; newest ? i >= 0 : i < list.size;) {
        const Copy copy = list.items[i];
        const bool runs = copy.thread == thread && copy.group && copy.group <= last;
        if (runs) {
            list.remove(i);
            run_copy(copy);
        }
        i += newest ? -1 : runs ? 0 : 1;
    }
}

void commit_stores()
{
    Fiber& fiber = *here->current;
    ++fiber.groups;
    for (Copy& copy : here->stores)
        if (copy.thread == fiber.thread.x && !copy.group) copy.group = fiber.groups;
    if (here->run->seed && !draw(3)) finish_stores(fiber.groups, draw(2));
    interrupt();
}

inline bool engine_runs()
{
    const Run& run = *here->run;
    return run.queued && (run.forced || run.engine == NEWEST_FIRST || (run.engine == ANY_TIME && !draw(4)));
}

bool wait_parity(la_u32 address, la_u32 parity, unsigned line)
{
    Fiber& fiber = *here->current;
    fiber.line = line;
    interrupt();
    const Barrier& barrier = barrier_at(address);
    const la_u32 phase = barrier.phase;
    if ((phase & 1) != parity) return true;
    fiber.barrier = address;
    while (barrier.phase == phase && !fiber.gives_up) {
        if (engine_runs()) engine_step();
        fiber.wait = AT_MEMORY_BARRIER;
        fiber.watched = &barrier.phase;
        fiber.seen = phase;
        yield();
    }
    fiber.wait = RUNS;
    const bool done = barrier.phase != phase;
    fiber.gives_up = false;
    if (done && barrier.phase != phase + 1) misused(PHASE_MISSED, address, phase, barrier.phase);
    return done;
}

void init_barrier(la_u32 address, la_u32 count)
{
    State& s = *here;
    if (address % 8 || count == 0 || count > 1048575) misused(BARRIER_MISUSE, address, count, 0);
    shared_bytes(address, 8);
    for (Barrier& old : s.barriers)
        if (old.address == address) misused(BARRIER_MISUSE, address, count, old.pending);
    append(s.barriers, {address, count, count, 0, 0});
    interrupt();
}

void expect(la_u32 address, la_u32 bytes, unsigned line)
{
    here->current->line = line;
    Barrier& found = barrier_at(address);
    found.bytes += bytes;
    settle(found);
    interrupt();
}

void arrive_remote(la_u32 address, la_u32 rank, unsigned line)
{
    State* const mine = here;
    mine->current->line = line;
    interrupt();
    if (rank >= mine->run->cluster || !live(mine->run->states[rank])) fault(CLUSTER_RANK);
    here = &mine->run->states[rank];
    Barrier& found = barrier_at(address);
    if (found.pending == 0) misused(BARRIER_MISUSE, address, 1, 0);
    --found.pending;
    settle(found);
    here = mine;
    interrupt();
}

void cluster_arrive(unsigned line)
{
    Fiber& fiber = *here->current;
    fiber.line = line;
    interrupt();
    if (fiber.cluster_arrived) fault(CLUSTER_BARRIER);
    fiber.cluster_arrived = fiber.cluster_waits = true;
    fiber.cluster_seen = here->run->cluster_generation;
    release_cluster();
}

void cluster_wait(unsigned line)
{
    Fiber& fiber = *here->current;
    fiber.line = line;
    if (!fiber.cluster_waits) fault(CLUSTER_BARRIER);
    fiber.cluster_waits = false;
    block_on(AT_CLUSTER_BARRIER, here->run->cluster_generation, fiber.cluster_seen);
}

#endif

}  // namespace la_host

// ------------------------------------------------------------------------------------------- the names kernels call

static inline void la_mbarrier_init(la_u32 barrier, la_u32 count) { la_host::init_barrier(barrier, count); }
static inline void la_arrive_expect_tx(la_u32 barrier, la_u32 bytes, unsigned line = __builtin_LINE())
{
    la_host::arrive(barrier, 1, bytes, line);
}
static inline void la_arrive_many(la_u32 barrier, la_u32 n, unsigned line = __builtin_LINE())
{
    la_host::arrive(barrier, n, 0, line);
}
static inline void la_arrive(la_u32 barrier, unsigned line = __builtin_LINE()) { la_host::arrive(barrier, 1, 0, line); }
static inline void la_expect_tx(la_u32 barrier, la_u32 bytes, unsigned line = __builtin_LINE())
{
    la_host::expect(barrier, bytes, line);
}
static inline bool la_wait_parity(la_u32 barrier, la_u32 parity, unsigned line = __builtin_LINE())
{
    return la_host::wait_parity(barrier, parity, line);
}
static inline void la_fence_async()
{
    ++la_host::here->current->fences;
    ++la_host::here->fences;
    la_host::interrupt();
}
static inline void la_fence_tensor_map(const la_tensor_map*) {}
static inline void la_store_commit() { la_host::commit_stores(); }
static inline void la_store_wait()
{
    la_host::yield();  // let the other threads run first
    la_host::finish_stores(la_host::here->current->groups, true);
}
// Later groups stay queued, so that overwriting a stage too early shows.
template <int pending>
static inline void la_store_wait_read()
{
    la_host::yield();
    const la_u32 groups = la_host::here->current->groups;
    if (groups > pending) la_host::finish_stores(groups - pending, false);
}
#define LA_HOST_ASYNC(bytes)                                                                                         \
    static inline void la_cp_async_##bytes(la_u32 shared, const void* from, unsigned line = __builtin_LINE())        \
    {                                                                                                                \
        la_host::start_async(shared, from, bytes, bytes, line);                                                      \
    }                                                                                                                \
    static inline void la_cp_async_fill_##bytes(                                                                     \
        la_u32 shared, const void* from, la_u32 filled, unsigned line = __builtin_LINE())                            \
    {                                                                                                                \
        la_host::start_async(shared, from, bytes, filled, line);                                                     \
    }
LA_HOST_ASYNC(4)
LA_HOST_ASYNC(8)
LA_HOST_ASYNC(16)
static inline void la_cp_async_commit() { la_host::commit_asyncs(); }
template <int pending>
static inline void la_cp_async_wait(unsigned line = __builtin_LINE()) { la_host::finish_asyncs(pending, line); }
static inline void la_cp_async_arrive(la_u32 barrier, unsigned line = __builtin_LINE())
{
    la_host::arrive_async(barrier, line);
}
static inline la_u32 la_cluster_rank() { return la_host::here->rank; }
static inline void la_cluster_arrive(unsigned line = __builtin_LINE()) { la_host::cluster_arrive(line); }
static inline void la_cluster_wait(unsigned line = __builtin_LINE()) { la_host::cluster_wait(line); }
static inline void la_arrive_remote(la_u32 barrier, la_u32 rank, unsigned line = __builtin_LINE())
{
    la_host::arrive_remote(barrier, rank, line);
}

#define la_arrive_remote_relaxed la_arrive_remote
static inline void la_dsmem_copy(
    la_u32 destination, la_u32 source, la_u32 bytes, la_u32 barrier, la_u32 rank, unsigned line = __builtin_LINE())
{
    if (rank > 31 || bytes == 0) la_host::fault(la_host::CLUSTER_RANK);
    la_host::start_load({true, nullptr, {}, 0, destination, barrier, 0, 0, line, 1u << rank, source, bytes});
}
static inline void la_prefetch_tensor_map(const la_tensor_map*) {}
static inline void la_sleep(la_u32 nanoseconds)
{
    for (la_u32 rounds = nanoseconds / 128; rounds; --rounds) {  // the other threads run meanwhile
        ++la_host::here->run->progress;
        la_host::yield();
    }
}

static inline void la_bulk_load(
    la_u32 destination, const void* source, la_u32 bytes, la_u32 barrier, unsigned line = __builtin_LINE())
{
    const la_u64 at = (la_u64)(uintptr_t)source;
    const la_u32 blocks = 1u << la_host::here->rank;
    la_host::start_load(
        {true, nullptr, {(int)at, (int)(at >> 32), (int)bytes}, 0, destination, barrier, 0, 0, line, blocks});
}
static inline void la_bulk_store(void* destination, la_u32 source, la_u32 bytes, unsigned line = __builtin_LINE())
{
    const la_u64 at = (la_u64)(uintptr_t)destination;
    la_host::start_store({false, nullptr, {(int)at, (int)(at >> 32), (int)bytes}, 0, source, 0, 0, 0, line, 0});
}

#define LA_HOST_COPIES(many, args, list)                                                                             \
    static inline void la_tma_load_multicast_##many##d(                                                              \
        la_u32 destination, const la_tensor_map* map, la_u32 barrier, la_u32 mask, args, unsigned line = __builtin_LINE()) \
    {                                                                                                                \
        la_host::start_load({true, map, {list}, many, destination, barrier, 0, 0, line, mask, 0, 0});                \
    }                                                                                                                \
    static inline void la_tma_load_##many##d(                                                                        \
        la_u32 destination, const la_tensor_map* map, la_u32 barrier, args, unsigned line = __builtin_LINE())        \
    {                                                                                                                \
        la_host::start_load({true, map, {list}, many, destination, barrier, 0, 0, line, 1u << la_host::here->rank, 0, 0}); \
    }                                                                                                                \
    static inline void la_tma_store_##many##d(                                                                       \
        const la_tensor_map* map, la_u32 source, args, unsigned line = __builtin_LINE())                             \
    {                                                                                                                \
        la_host::start_store({false, map, {list}, many, source, 0, 0, 0, line, 0, 0, 0});                            \
    }
#define LA_COMMA ,
LA_HOST_COPIES(1, int c0, c0)
LA_HOST_COPIES(2, int c0 LA_COMMA int c1, c0 LA_COMMA c1)
LA_HOST_COPIES(3, int c0 LA_COMMA int c1 LA_COMMA int c2, c0 LA_COMMA c1 LA_COMMA c2)
LA_HOST_COPIES(4, int c0 LA_COMMA int c1 LA_COMMA int c2 LA_COMMA int c3, c0 LA_COMMA c1 LA_COMMA c2 LA_COMMA c3)
LA_HOST_COPIES(5, int c0 LA_COMMA int c1 LA_COMMA int c2 LA_COMMA int c3 LA_COMMA int c4,
               c0 LA_COMMA c1 LA_COMMA c2 LA_COMMA c3 LA_COMMA c4)
