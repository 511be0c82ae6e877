cimport cython
from libc.math cimport ceil, floor, log10, nextafter, sqrt, INFINITY as inf

ctypedef long long whole

cdef whole NOBODY, ENDED, TURNS, PLENTY, BINS_PER_DECADE, FIRST_BIN, LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM
cdef whole N_DECAYS, CLIPPED, KEPT_PASSES, N_TRIES, N_LOOKED_AT
cdef double FACTOR

@cython.final
cdef class Requests:
    cdef whole[::1] n_input, n_output, of_class, family, n_shared, priority
    cdef double[::1] ready_s, first_s, last_s, lost_s
    cdef whole[::1] behind, ends, written, n_tokens, n_read, begun, filled, run, given

@cython.final
cdef class Line:
    cdef whole[::1] behind
    cdef whole first, last
    cdef void append(self, whole request) noexcept
    cdef void put_first(self, whole request) noexcept
    @cython.locals(before=whole, after=whole)
    cdef void insert(self, whole request, double[::1] ready_s) noexcept
    cdef whole pop(self) noexcept

@cython.final
cdef class Heap:
    cdef whole[::1] key, one, keys
    cdef whole n
    @cython.locals(n=whole, i=whole, at=whole, up=whole)
    cdef void push(self, whole key, whole item) noexcept
    cdef whole first(self) noexcept
    @cython.locals(n=whole, key=whole, item=whole, at=whole, down=whole)
    cdef void drop(self) noexcept

@cython.final
cdef class Times:
    cdef double[::1] contexts, sequences, tokens, spans
    cdef double[::1] lines, planes
    cdef whole n_contexts, at, n_at, j, k
    cdef double step_s, slope_s, left
    @cython.locals(at=whole, inside=double, rise=double, low=double)
    cdef double step(self, whole n, double context) noexcept
    @cython.locals(at=whole, inside=double, seconds=double)
    cdef double reading(self, double n, double tokens, double span) noexcept
    @cython.locals(j=whole, k=whole, below=whole, beyond=whole, right=double, down=double, near=double, far=double, n=whole, row=whole, other=whole)
    cdef double plane(self, whole at, double tokens, double span) noexcept

@cython.locals(low=whole, high=whole, middle=whole)
cdef whole cell(double[::1] points, double x, whole last) noexcept

@cython.final
cdef class Idle:
    cdef whole[::1] family, begin, stop, below, known, top, holders
    cdef whole size, head, tail, n, n_shared
    @cython.locals(at=whole)
    cdef whole lay(self, whole family, whole begin, whole stop) noexcept
    @cython.locals(at=whole, n_here=whole)
    cdef void lose(self, whole n) noexcept
    @cython.locals(at=whole)
    cdef whole upto(self, whole run) noexcept
    @cython.locals(at=whole, n=whole)
    cdef whole wake(self, whole run, whole upto) noexcept
    @cython.locals(first=whole)
    cdef whole n_held(self, whole family, whole n) noexcept
    @cython.locals(woken=whole, at=whole)
    cdef whole wake_family(self, whole family, whole n) noexcept
    @cython.locals(i=whole)
    cdef void hold(self, whole family, whole begin, whole stop) noexcept
    @cython.locals(i=whole, held=whole)
    cdef whole leave(self, whole family, whole n) noexcept

@cython.final
cdef class Tree:
    cdef Requests log
    cdef whole block, n, n_idle, now, spare
    cdef whole[::1] first, parent, owner, stop, locks, child, n_children, touched, before, after
    @cython.locals(node=whole)
    cdef whole add(self, whole parent, whole owner, whole stop) noexcept
    @cython.locals(n_shared=whole, n_input=whole)
    cdef whole alike(self, whole request) noexcept
    cdef whole edge(self, whole node, whole request) noexcept
    cdef void join(self, whole node, whole owner, whole child) noexcept
    @cython.locals(before=whole, after=whole)
    cdef void unlink(self, whole node) noexcept
    @cython.locals(before=whole, after=whole)
    cdef void link(self, whole node) noexcept
    cdef void touch(self, whole node) noexcept
    @cython.locals(node=whole, child=whole, upto=whole)
    cdef whole match(self, whole request, whole n_pages) noexcept
    @cython.locals(parent=whole, owner=whole, upper=whole)
    cdef whole split(self, whole child, whole stop) noexcept
    @cython.locals(node=whole, child=whole)
    cdef whole insert(self, whole request, whole n_pages) noexcept
    @cython.locals(held=whole)
    cdef whole hold(self, whole node, whole by) noexcept
    @cython.locals(node=whole, parent=whole)
    cdef bint lose(self) noexcept

@cython.locals(copy=whole[::1], i=whole)
cdef whole[::1] longer(whole[::1] values)

@cython.final
cdef class Rank:
    cdef whole n_lanes, most_running, chunk_tokens, n_polled, block, own_blocks
    cdef public bint only_reads
    cdef bint mixes, ahead, only_decodes, caches, by_priority, is_short, retracts, is_full, flew
    cdef double room, sequence_bytes, block_bytes, reserved
    cdef public double least_s
    cdef double least_step_s
    cdef whole most_read
    cdef Times times
    cdef Requests log
    cdef Heap ends
    cdef Idle idle
    cdef Tree tree
    cdef whole n_due, n_done, n_tries, n_decays, n_parts, unspent, tokens, new_pages, last_read, last_part
    cdef double rested_s, base_share, first_share, owed, pairs
    cdef whole[::1] gaps
    cdef double[::1] gap_total_s, gap_s
    cdef whole n_classes, n_bins, n_stack, n_begun, n_leaving, n_levels, level
    cdef public bint is_watched
    cdef whole[::1] stack, decoding, phases, leaving, due
    cdef list lines
    cdef Line coming, waiting, read, ended
    cdef whole n_left, n_reading, rounds, since_look, batch
    cdef whole held, n_sequences, promised, n_known, n_unheld, n_passes, n_given, n_evicted, watermark, n_blocks
    cdef double context, stall_s, seen_s, began_s, run_step_s, slope_s
    cdef whole n_run, n_counted, most_run
    cdef public double free_s, idle_s
    cdef public whole n_begun_again
    @cython.locals(ready_s=double)
    cdef void advance(self, double until_s) noexcept
    @cython.locals(least=double, begins_s=double)
    cdef double none_ends_before_s(self) noexcept
    @cython.locals(step_s=double, passes=whole, alike=whole)
    cdef double until_one_ends_s(self) noexcept
    cdef bint is_busy(self) noexcept
    cdef void line_up(self) noexcept
    cdef void see(self, double seen_s) noexcept
    @cython.locals(line=Line)
    cdef void wait(self, whole request, bint back) noexcept
    @cython.locals(level=whole, line=Line)
    cdef whole first(self) noexcept
    @cython.locals(reads=bint, evicts=bint, leaving=whole)
    cdef void run_pass(self, double until_s) noexcept
    cdef bint is_unmissed(self) noexcept
    cdef void go(self, bint reads, bint evicts, double until_s) noexcept
    cdef bint reads(self, bint begins) noexcept
    cdef bint is_tight(self) noexcept
    cdef whole free(self) noexcept
    @cython.locals(room=double)
    cdef whole beside(self, whole n_sequences) noexcept
    cdef whole blocks(self, whole n_tokens) noexcept
    @cython.locals(n_running=whole, request=whole, n_tokens=whole, needed=whole, ahead=double, owed=whole, free=whole)
    cdef bint may_begin(self, whole beside) noexcept
    @cython.locals(n_output=whole)
    cdef whole upto(self, whole request) noexcept
    @cython.locals(family=whole, n_alike=whole, most=whole, n=whole, known=whole, upto=whole)
    cdef void find(self, whole request, whole n_tokens) noexcept
    @cython.locals(request=whole, line=Line, n_tokens=whole, n_read=whole, family=whole, n_alike=whole, n=whole)
    cdef whole begin(self) noexcept
    @cython.locals(request=whole)
    cdef void join(self) noexcept
    @cython.locals(before=whole, family=whole, n_alike=whole, begin=whole, stop=whole)
    cdef void fill(self, whole request, whole n_tokens) noexcept
    @cython.locals(lost=whole)
    cdef void take(self, whole n) noexcept
    @cython.locals(n_tokens=whole, left=whole)
    cdef void decode(self, whole request) noexcept
    cdef whole phase(self, whole n_tokens) noexcept
    @cython.locals(kept=whole, i=whole)
    cdef void remember(self, whole request) noexcept
    @cython.locals(request=whole)
    cdef bint is_standing(self, whole i) noexcept
    cdef void end(self, whole request) noexcept
    @cython.locals(i=whole, request=whole, written=whole, cached=whole)
    cdef void leave(self, whole n) noexcept
    @cython.locals(family=whole, n_alike=whole)
    cdef void lose(self, whole request, whole n_tokens, whole n_full) noexcept
    @cython.locals(at=whole)
    cdef whole bin(self, double gap_s) noexcept
    @cython.locals(row=whole)
    cdef void gap(self, double gap_s, whole n, whole of_class) noexcept
    @cython.locals(one=whole)
    cdef void gap_of_all(self, double gap_s) noexcept
    @cython.locals(first=whole, last=whole, low_s=double, high_s=double, one=whole, row=whole)
    cdef void count_gaps(self) noexcept
    @cython.locals(at=whole, middle=whole, one=whole, row=whole)
    cdef void put_in_bins(self, whole first, whole last) noexcept
    @cython.locals(one=whole)
    cdef void pass_edge(self) noexcept
    cdef void end_run(self) noexcept
    cdef whole budget(self) noexcept
    @cython.locals(budget=whole, tokens=whole, pairs=double, request=whole, last_read=whole, last_part=whole, part=whole, n=whole)
    cdef void read_prompts(self, bint begins) noexcept
    @cython.locals(grown_s=double, began_s=double, step_s=double)
    cdef void read_through(self, whole n, whole tokens, double pairs, whole last, whole part) noexcept
    @cython.locals(left=whole)
    cdef whole part_of(self, whole request, whole budget) noexcept
    @cython.locals(request=whole)
    cdef void parts_read(self, whole last, whole part) noexcept
    @cython.locals(pages=whole, at=whole, i=whole)
    cdef whole growth(self, whole k) noexcept
    @cython.locals(free=whole, k=whole, at=whole)
    cdef whole fitting(self, whole most) noexcept
    @cython.locals(n=whole, most=whole, k=whole)
    cdef void decode_on(self, double until_s) noexcept
    cdef void begin_run(self) noexcept
    cdef double end_s(self, whole n) noexcept
    @cython.locals(to_look=whole, is_waited=bint, ready_s=double, k=whole, beyond=whole)
    cdef whole until(self, double until_s) noexcept
    @cython.locals(left_s=double, most=whole, k=whole, half=double, root=double)
    cdef whole passes_until(self, double until_s) noexcept
    @cython.locals(request=whole, key=whole, cached=whole)
    cdef void write_by_all(self, whole n, whole k) noexcept
    @cython.locals(n_before=whole, i=whole, request=whole, needs=whole, last=whole, budget=whole, filled=whole)
    cdef bint makes_room(self) noexcept
    @cython.locals(needs=whole, last=whole)
    cdef void give_block(self, whole request) noexcept
    @cython.locals(n_tokens=whole)
    cdef whole needs(self, whole request) noexcept
    @cython.locals(last=whole, i=whole)
    cdef whole last(self) noexcept
    cdef whole later(self, whole first, whole other) noexcept
    @cython.locals(ends=whole, i=whole, filled=whole)
    cdef void evict(self, whole request) noexcept
    @cython.locals(cached=whole, known=whole)
    cdef void stop(self, whole request, whole remaining) noexcept
    @cython.locals(written=whole, cached=whole)
    cdef whole drop(self, whole request, whole remaining, whole n_unknown) noexcept
    @cython.locals(was_alone=bint, tries=bint)
    cdef bint go_by_tokens(self, double until_s) noexcept
    @cython.locals(is_asked=bint)
    cdef void pass_by_tokens(self, double until_s) noexcept
    cdef void clear(self, whole n_tokens) noexcept
    cdef void wait_for(self, whole told) noexcept
    @cython.locals(i=whole, request=whole, cached=whole)
    cdef void settle(self) noexcept
    @cython.locals(node=whole, n_pages=whole, n_input=whole, kept=whole)
    cdef void keep(self, whole request, whole n_tokens) noexcept
    @cython.locals(node=whole)
    cdef void lose_pages(self, whole request, whole n_tokens) noexcept
    @cython.locals(ends=whole, is_under_way=bint)
    cdef whole yet(self, whole request) noexcept
    cdef double rest(self, whole n_more) noexcept
    cdef bint parts(self, bint begins) noexcept
    @cython.locals(least=double, share=double, i=whole)
    cdef void reserve(self) noexcept
    cdef bint may_try(self) noexcept
    @cython.locals(n_read=whole, part=whole)
    cdef void charge(self, whole request) noexcept
    @cython.locals(n_tokens=whole, node=whole, n_read=whole, needed=whole, line=Line)
    cdef bint start(self, whole request) noexcept
    @cython.locals(level=whole, line=Line)
    cdef void look_up(self) noexcept
    @cython.locals(n_tokens=whole)
    cdef void look_up_from(self, whole request, whole n) noexcept
    cdef void take_blocks(self, whole k) noexcept
    @cython.locals(known=whole, answers=whole, i=whole)
    cdef bint fits(self) noexcept
    @cython.locals(least=whole, fewest=whole, n_input=whole, i=whole, request=whole, written=whole)
    cdef whole least(self) noexcept
    @cython.locals(remaining=whole, i=whole)
    cdef void retract(self, whole request) noexcept

@cython.final
cdef class Links:
    cdef double latency_s, bytes_per_s, wire_bytes_per_s, sequence_bytes, token_bytes
    cdef double[::1] pairs, sends, gets
    cdef whole n_replicas
    @cython.locals(pair=whole, n_bytes=double, begins_s=double, ends_s=double, sent_s=double)
    cdef double done_s(self, double now_s, whole n_tokens, whole sender, whole receiver) noexcept

@cython.final
cdef class Pool:
    cdef whole first, n_replicas, n_ranks, router, first_replica, block, own_blocks, n_chosen, next_one
    cdef bint looks
    cdef double room, sequence_bytes, block_bytes, request_s, request_token_s
    cdef whole[::1] counts, of_replica
    cdef double[::1] chances
    @cython.locals(rank=whole, best=whole, one=whole)
    cdef whole choose(self) noexcept
    @cython.locals(n=whole, chosen=whole, least=whole, start=whole, i=whole, number=whole)
    cdef whole replica(self) noexcept
    cdef void count(self, whole rank, whole by) noexcept
    @cython.locals(n_blocks=whole)
    cdef bint has_room_for(self, whole n_tokens) noexcept

@cython.final
cdef class Fleet:
    cdef list pools, ranks, links
    cdef Requests log
    cdef whole[::1] pool_of, edges, rank_of, route_of
    cdef whole[::1] routes
    cdef double[::1] edge_s, busy_s, next_s
    cdef whole next_edge, n_ranks
    cdef bint hands_over
    @cython.locals(n=whole, i=whole, rank=Rank, request=whole, now_s=double)
    cpdef serve(self, double[::1] arrived_s)
    @cython.locals(first=whole, i=whole, rank=Rank)
    cdef void hand_over(self, double until_s) noexcept
    @cython.locals(rank=Rank, request=whole)
    cdef void settle(self, whole number, double now_s) noexcept
    @cython.locals(rank=Rank, at_s=double)
    cdef void look_again(self, whole number) noexcept
    @cython.locals(rank=Rank, i=whole, last_s=double)
    cdef void finish(self, whole n) noexcept
    @cython.locals(route=whole, pool=Pool, then=Pool, number=whole, n_input=whole, n_output=whole, fits=bint)
    cdef void arrive(self, whole request, double now_s) noexcept
    @cython.locals(i=whole)
    cdef whole choose(self, Pool pool, double now_s) noexcept
    @cython.locals(pool=Pool, rank=Rank, ready_s=double, at_s=double)
    cdef void give(self, whole request, whole number, double now_s) noexcept
    @cython.locals(number=whole, route=whole, of_pool=whole, then=whole, ours=Pool, theirs=Pool, links=Links, chosen=whole, sender=whole, receiver=whole, n_tokens=whole)
    cdef void end(self, whole request, double now_s) noexcept
    @cython.locals(i=whole, rank=Rank)
    cdef void pass_edge(self, double now_s) noexcept
