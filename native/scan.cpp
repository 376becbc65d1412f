// Tables are rounded to bytes for the scan. The rounded sum of a document differs from its exact sum by a known bound, so
// that whatever could be among the best k is kept, and summed again with the float tables, for m = 0 .. M - 1. The score is
// that sum times the gain of its class. Where only the first bytes of codes are scanned, all of this is done with those; the best
// documents are then summed once more, with all bytes.

#include "scan.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <tuple>

#include "candidates.hpp"
#include "instructions.hpp"
#include "threads.hpp"

namespace repconc {
namespace {

constexpr auto kRows = static_cast<std::int64_t>(kBlock), kGroupRows = static_cast<std::int64_t>(kGroup * kBlock);
constexpr std::int64_t kPiece = 4096;               // documents that are read once for all queries of a batch: they fit
                                                    // into the second-level cache, beside the tables
constexpr std::size_t kTogether = 2;                // queries that read a group at the same time
constexpr std::size_t kWorthAThread = 1 << 16;      // documents: fewer are scanned before a thread has begun
constexpr std::int64_t kBetweenQuestions = 1 << 22; // documents between two looks at whether to stop

// 64 bits from any place of a bitmap; bits behind its end are zero.
std::uint64_t bits_at(const std::uint8_t* bits, std::size_t size, std::int64_t place) {
    const auto byte = static_cast<std::size_t>(place >> 3);
    unsigned char window[9] = {};
    if (byte < size) std::memcpy(window, bits + byte, std::min<std::size_t>(9, size - byte));
    std::uint64_t low;
    std::memcpy(&low, window, 8);
    const int shift = static_cast<int>(place & 7);
    return shift ? (low >> shift) | (static_cast<std::uint64_t>(window[8]) << (64 - shift)) : low;
}

// Documents start .. stop - 1, which begin with a block; `stop` may lie within the last block of a list only.
// next: the document that will be read afterwards; asked, candidates: of each of `count` <= kTogether queries.
void scan_piece(const Codes& codes, Range piece, std::int64_t next, Asked* asked, Candidates* const* candidates,
                std::size_t count) {
    const Instructions& use = instructions();
    const auto at = [&](std::int64_t place) { return codes.bytes + static_cast<std::size_t>(place) * codes.M; };
    const auto advance = [&](std::size_t& kind, std::int64_t place) {
        while (piece.stops[kind] <= place) ++kind;
    };
    // kind: the class of the document at `start`, or one before it.
    const auto take = [&](std::size_t query, std::uint64_t found, std::int64_t start, std::int64_t rows, const std::uint16_t* sums,
                          std::size_t kind) {
        if (found && codes.allowed) found &= bits_at(codes.allowed, codes.allowed_bytes, start);
        for (; found; found &= found - 1) {
            const int row = __builtin_ctzll(found);
            advance(kind, start + row);
            if (sums[row] >= candidates[query]->threshold(kind))
                candidates[query]->add({start + row, at(start) + row, sums[row], static_cast<std::uint16_t>(rows),
                                        static_cast<std::uint16_t>(kind)});
        }
    };
    std::size_t first = 0, last = 0;  // the classes of the first and of the last document that are read together
    const auto ask = [&](std::int64_t start, std::int64_t stop) {
        advance(first, start), advance(last, stop - 1);
        for (std::size_t query = 0; query < count; ++query) asked[query].threshold = candidates[query]->threshold(first, last);
    };
    std::int64_t start = piece.start;
    for (; start + kGroupRows <= piece.stop; start += kGroupRows) {
        const std::int64_t after = start + kGroupRows;
        ask(start, after);
        use.group_sums(at(start), codes.M * kBlock, codes.first, asked, count, at(after < piece.stop ? after : next));
        for (std::size_t query = 0; query < count; ++query)
            for (std::size_t part = 0; part < kGroup; ++part)
                take(query, asked[query].above[part], start + static_cast<std::int64_t>(part * kBlock), kRows,
                     asked[query].sums + part * kBlock, first);
    }
    for (; start < piece.stop; start += kRows) {
        const std::int64_t rows = std::min(kRows, piece.stop - start);
        ask(start, start + rows);
        for (std::size_t query = 0; query < count; ++query) {
            Asked& own = asked[query];
            const std::uint64_t found =
                use.block_sums(at(start), codes.first, static_cast<std::size_t>(rows), own.query, own.threshold, own.sums);
            take(query, found, start, rows, own.sums, first);
        }
    }
}

// A piece of a list, and the queries that read it: those of visits first .. last - 1.
struct Visit {
    Range list;
    std::size_t query;
    bool later;  // not the query's first list
};

struct Unit {
    Range piece;
    std::size_t first, last;
};

// Queries that read the same list read it together. Each query's first list comes before all others: what is found there
// sets a threshold that most documents of the others do not reach.
std::vector<Visit> visits_of(const std::vector<std::vector<Range>>& lists) {
    std::vector<Visit> visits;
    for (std::size_t query = 0; query < lists.size(); ++query)
        for (std::size_t rank = 0; rank < lists[query].size(); ++rank)
            if (lists[query][rank].start < lists[query][rank].stop) visits.push_back({lists[query][rank], query, rank > 0});
    if (lists.size() > 1)
        std::stable_sort(visits.begin(), visits.end(), [](auto& a, auto& b) {
            return std::tie(a.later, a.list.start, a.list.stop) < std::tie(b.later, b.list.start, b.list.stop);
        });
    return visits;
}

std::vector<Unit> units_of(const std::vector<Visit>& visits) {
    std::vector<Unit> units;
    for (std::size_t first = 0, last; first < visits.size(); first = last) {
        const Visit& visit = visits[first];
        for (last = first + 1; last < visits.size(); ++last)
            if (visits[last].list.start != visit.list.start || visits[last].list.stop != visit.list.stop ||
                visits[last].later != visit.later)
                break;
        for (std::int64_t start = visit.list.start; start < visit.list.stop; start += kPiece)
            units.push_back({{start, std::min(start + kPiece, visit.list.stop), visit.list.stops}, first, last});
    }
    return units;
}

}  // namespace

std::vector<Found> scan(const Codes& codes, const float* tables, const std::vector<std::vector<Range>>& lists,
                        const std::vector<float>& gains, Wanted wanted, std::size_t threads, const std::function<bool()>& interrupted) {
    const std::size_t size = codes.M * kEntries, count = lists.size();
    std::vector<RoundedTables> rounded;
    const float gain = std::max(1.0f, *std::max_element(gains.begin(), gains.end()));
    for (std::size_t query = 0; query < count; ++query) rounded.emplace_back(tables + query * size, codes.M, codes.first, gain);
    std::vector<Candidates> fresh;
    for (std::size_t query = 0; query < count; ++query) fresh.emplace_back(tables + query * size, codes, rounded[query], gains, wanted);
    const std::vector<Visit> visits = visits_of(lists);
    const std::vector<Unit> units = units_of(visits);
    std::size_t all = 0;  // documents, each as often as it is read
    for (const Unit& unit : units)
        all += static_cast<std::size_t>(unit.piece.stop - unit.piece.start) * (unit.last - unit.first);
    threads = std::clamp<std::size_t>(threads, 1, std::min(1 + all / kWorthAThread, kMostThreads));

    std::vector<std::vector<Candidates>> found(threads, fresh);  // each thread keeps its own
    std::atomic<std::size_t> taken{0};
    std::atomic<bool> stopped{false};
    const auto work = [&](std::size_t thread) {
        std::int64_t since = 0;
        Asked asked[kTogether];
        for (std::size_t number; !stopped && (number = taken++) < units.size();) {
            const Unit& unit = units[number];
            const std::int64_t next = units[std::min(number + 1, units.size() - 1)].piece.start;
            for (std::size_t visit = unit.first; visit < unit.last; visit += kTogether) {
                const std::size_t together = std::min(kTogether, unit.last - visit);
                Candidates* theirs[kTogether];
                for (std::size_t place = 0; place < together; ++place) {
                    const std::size_t query = visits[visit + place].query;
                    asked[place].query = rounded[query].view(), theirs[place] = &found[thread][query];
                }
                scan_piece(codes, unit.piece, next, asked, theirs, together);
            }
            since += (unit.piece.stop - unit.piece.start) * static_cast<std::int64_t>(unit.last - unit.first);
            if (thread == 0 && since >= kBetweenQuestions) since = 0, stopped = stopped || interrupted();
        }
    };
    on_threads(threads, work);
    std::vector<Found> results(count);
    for (std::size_t query = 0; query < count && !stopped; ++query) {
        for (std::size_t thread = 1; thread < threads; ++thread) found[0][query].join(found[thread][query]);
        results[query] = found[0][query].finish();
    }
    return results;
}

}  // namespace repconc
