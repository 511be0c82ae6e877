cimport cython
from libc.math cimport ceil, floor, log10, nextafter, sqrt, INFINITY as inf

ctypedef long long whole

cdef whole NOBODY, BINS_PER_DECADE, FIRST_BIN, STANDS, ENDS, LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM

cdef class Requests:
    cdef whole[::1] n_input, n_output, n_cached, of_class
    cdef double[::1] ready_s, first_s, last_s, lost_s
    cdef whole[::1] behind, ends, written, n_tokens, n_read, begun

cdef class Line:
    cdef whole[::1] behind
    cdef whole first, last
    cdef void append(self, whole request) noexcept
    cdef void put_first(self, whole request) noexcept
    cdef whole pop(self) noexcept

cdef class Heap:
    cdef object new_floats, new_integers
    cdef double[::1] key
    cdef whole[::1] order, one, other
    cdef whole size, n
    @cython.locals(n=whole, which=whole, i=whole, key=object, numbers=object, before=object)
    cdef grow(self)
    @cython.locals(at=whole, up=whole)
    cdef void push(self, double key, whole order, whole one, whole other) noexcept
    @cython.locals(n=whole, key=double, order=whole, one=whole, other=whole, at=whole, down=whole, right=whole)
    cdef void drop(self) noexcept

cdef class Times:
    cdef double[::1] contexts, sequences, tokens, spans
    cdef double[::1] lines, planes
    cdef whole n_contexts
    cdef double step_s, slope_s, left
    @cython.locals(at=whole, inside=double, rise=double, low=double)
    cdef double step(self, whole n, double context) noexcept
    @cython.locals(at=whole, inside=double, found=double)
    cdef double reading(self, double n, double tokens, double span) noexcept
    @cython.locals(j=whole, k=whole, below=whole, beyond=whole, right=double, down=double, near=double, far=double, n=whole, row=whole, other=whole)
    cdef double plane(self, whole at, double tokens, double span) noexcept

@cython.locals(low=whole, high=whole, middle=whole)
cdef whole cell(double[::1] points, double x) noexcept

cdef class Rank:
    cdef whole n_lanes, most_running, chunk_tokens, n_polled
    cdef bint mixes, ahead, only_reads, only_decodes
    cdef double room, sequence_bytes, token_bytes, reserved
    cdef Times times
    cdef Requests log
    cdef Heap ends
    cdef whole[::1] gaps
    cdef double[::1] gap_total_s
    cdef whole n_classes, n_bins, n_stack, n_begun
    cdef bint is_crowded
    cdef public bint is_watched
    cdef whole[::1] stack, decoding
    cdef Line coming, waiting, read, ended
    cdef whole n_left, n_reading, rounds, since_look, batch
    cdef double context, held, owed, stall_s, seen_s
    cdef public double free_s, idle_s
    cdef public whole n_begun_again
    @cython.locals(ready_s=double)
    cdef void advance(self, double until_s) noexcept
    @cython.locals(least=double, step_s=double, ready_s=double, comes_s=double)
    cdef double none_ends_before_s(self) noexcept
    cdef bint is_busy(self) noexcept
    @cython.locals(seen_s=double)
    cdef void line_up(self) noexcept
    @cython.locals(reads=bint, decodes=bint, evicts=bint)
    cdef void run_pass(self, double until_s) noexcept
    @cython.locals(written=whole, owed=double, held=double)
    cdef bint may_begin(self, whole request) noexcept
    @cython.locals(request=whole, written=whole, n_tokens=whole, cached=whole)
    cdef whole begin(self) noexcept
    @cython.locals(request=whole)
    cdef void join(self) noexcept
    @cython.locals(n_tokens=whole, left=whole)
    cdef void decode(self, whole request) noexcept
    @cython.locals(kept=whole, i=whole)
    cdef void remember(self, whole request) noexcept
    @cython.locals(request=whole)
    cdef bint is_standing(self, whole i) noexcept
    cdef void end(self, whole request, whole n_cached) noexcept
    @cython.locals(at=whole, row=whole)
    cdef void gap(self, double gap_s, whole n, whole of_class) noexcept
    @cython.locals(one=whole)
    cdef void gap_of_all(self, double gap_s, whole k) noexcept
    cdef bint gathers(self) noexcept
    cdef whole budget(self) noexcept
    @cython.locals(budget=whole, tokens=whole, pairs=double, request=whole, last_read=whole, last_part=whole, part=whole, n=whole, grown_s=double, began_s=double, step_s=double)
    cdef void read_prompts(self, bint begins) noexcept
    @cython.locals(left=whole)
    cdef whole part_of(self, whole request, whole budget) noexcept
    @cython.locals(request=whole)
    cdef void parts_read(self, whole last, whole part) noexcept
    @cython.locals(n=whole, step_s=double, slope_s=double, cell_left=double, most=double, growth=double, fits=double, k=whole, took_s=double)
    cdef void decode_on(self, double until_s) noexcept
    @cython.locals(to_look=whole, is_waited=bint, ready_s=double, left_s=double, k=whole, beyond=whole)
    cdef whole until(self, double until_s, double step_s, double slope_s) noexcept
    cdef whole ends_next(self) noexcept
    @cython.locals(request=whole, ends=whole, cached=whole)
    cdef void write_by_all(self, whole n, whole k) noexcept
    @cython.locals(n=whole, evicts=bint, request=whole, remaining=whole, written=whole, cached=whole)
    cdef bint makes_room(self) noexcept

@cython.locals(most=whole, k=whole, half=double, root=double)
cdef whole passes_until(double left_s, double step_s, double slope_s) noexcept

cdef class Links:
    cdef double latency_s, bytes_per_s, wire_bytes_per_s, sequence_bytes, token_bytes
    cdef double[::1] pairs, sends, gets
    cdef whole n_replicas
    @cython.locals(pair=whole, n_bytes=double, begins_s=double, ends_s=double, sent_s=double)
    cdef double done_s(self, double now_s, whole n_tokens, whole sender, whole receiver) noexcept

cdef class Pool:
    cdef whole first, n_replicas, n_ranks, router, first_replica, n_chosen, next_one
    cdef double room, sequence_bytes, token_bytes, request_s, request_token_s
    cdef whole[::1] counts, of_replica
    cdef double[::1] chances
    @cython.locals(rank=whole, best=whole, one=whole)
    cdef whole choose(self) noexcept
    @cython.locals(n=whole, chosen=whole, least=whole, start=whole, i=whole, one=whole)
    cdef whole replica(self) noexcept
    cdef void count(self, whole rank, whole by) noexcept
    cdef bint has_room_for(self, whole n_tokens) noexcept

cdef class Fleet:
    cdef list pools, ranks, links
    cdef Requests log
    cdef Heap events
    cdef whole[::1] pool_of, edges, rank_of, route_of, versions
    cdef whole[::1] routes
    cdef double[::1] edge_s
    cdef double[::1] busy_s
    cdef whole n_come, next_edge
    @cython.locals(n=whole, sent=whole, order=whole)
    cpdef serve(self, double[::1] arrived_s)
    cdef bint is_next(self, double at_s, whole order) noexcept
    @cython.locals(now_s=double, what=whole, version=whole)
    cdef void happen(self) noexcept
    @cython.locals(rank=Rank, i=whole, last_s=double)
    cdef void finish(self, whole n) noexcept
    cdef void push(self, double at_s, whole one, whole other) noexcept
    @cython.locals(route=whole, pool=Pool, then=Pool, rank=whole, n_input=whole, n_output=whole, fits=bint)
    cdef void arrive(self, whole request, double now_s) noexcept
    @cython.locals(pool=Pool)
    cdef void give(self, whole request, whole rank, double now_s) noexcept
    @cython.locals(rank=whole, one=Rank)
    cdef void stand(self, whole request) noexcept
    @cython.locals(one=Rank, at_s=double)
    cdef void schedule(self, whole rank, double now_s) noexcept
    @cython.locals(one=Rank, request=whole)
    cdef void advance(self, whole rank, double until_s) noexcept
    @cython.locals(rank=whole, route=whole, number=whole, then=whole, ours=Pool, theirs=Pool, links=Links, chosen=whole, sender=whole, receiver=whole, n_tokens=whole)
    cdef void end(self, whole request, double now_s) noexcept
    @cython.locals(i=whole, rank=Rank)
    cdef void pass_edge(self, double now_s) noexcept
