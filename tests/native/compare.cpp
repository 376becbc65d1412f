// An instruction set against the portable one, and whole searches against plain sums. Ends with 1 where they differ.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "assign.hpp"
#include "instructions.hpp"
#include "lists.hpp"
#include "scan.hpp"

using namespace repconc;

namespace {

std::mt19937 random_numbers(7);

template <typename Value>
std::vector<Value> numbers(std::size_t count, int low, int high) {
    std::uniform_int_distribution<int> any(low, high);
    std::vector<Value> values(count);
    for (Value& value : values) value = static_cast<Value>(any(random_numbers));
    return values;
}

std::vector<float> floats(std::size_t count) {
    std::normal_distribution<float> any;
    std::vector<float> values(count);
    for (float& value : values) value = any(random_numbers);
    return values;
}

bool same_sums(const Instructions& set, std::size_t M, std::size_t rows, std::uint16_t threshold) {
    const auto codes = numbers<std::uint8_t>(kGroup * kBlock * M, 0, 255), tables = numbers<std::uint8_t>((M + 5) * kEntries, 0, kHighest);
    std::vector<std::uint16_t> ours(kGroup * kBlock), plain(kGroup * kBlock);
    std::uint64_t above[1], expected[1];
    const std::vector<std::uint8_t> cut(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(rows * M));
    const auto again = numbers<std::uint16_t>(5, 0, static_cast<int>(M) - 1);
    const Rounded whole{tables.data(), again.data(), rows % 5};
    above[0] = set.block_sums(cut.data(), M, rows, whole, threshold, ours.data());
    expected[0] = kPortable.block_sums(cut.data(), M, rows, whole, threshold, plain.data());
    if (above[0] != expected[0]) return false;
    for (std::size_t row = 0; row < rows; ++row)
        if (above[0] >> row & 1 && ours[row] != plain[row]) return false;
    for (std::size_t count = 1; count <= 3; ++count) {  // queries together, each with tables and a threshold of its own
        const std::size_t most = M + 5;
        const auto others = numbers<std::uint8_t>(count * most * kEntries, 0, kHighest);
        std::vector<Asked> some(count), same(count);
        for (std::size_t query = 0; query < count; ++query) {
            some[query].query = same[query].query = {others.data() + query * most * kEntries, again.data(), 2 * query};
            some[query].threshold = same[query].threshold = static_cast<std::uint16_t>(threshold + 7 * query);
        }
        const std::size_t first = count == 2 ? M : (M + 1) / 2;  // all bytes, or those that come first
        set.group_sums(codes.data(), M * kBlock, first, some.data(), count, codes.data());
        kPortable.group_sums(codes.data(), M * kBlock, first, same.data(), count, codes.data());
        for (std::size_t query = 0; query < count; ++query)
            for (std::size_t row = 0; row < kGroup * kBlock; ++row) {
                const Asked &own = some[query], &wanted = same[query];
                const bool found = own.above[row / kBlock] >> row % kBlock & 1;
                if (found != (wanted.above[row / kBlock] >> row % kBlock & 1)) return false;
                if (found && own.sums[row] != wanted.sums[row]) return false;
            }
    }
    return true;
}

bool same_tables(const Instructions& set, std::size_t M, std::size_t d, std::size_t K) {
    const auto codebooks = floats(M * d * K), query = floats(M * d);
    std::vector<float> ours(M * kEntries), plain(M * kEntries);
    set.make_tables(codebooks.data(), query.data(), M, d, K, ours.data());
    kPortable.make_tables(codebooks.data(), query.data(), M, d, K, plain.data());
    std::vector<std::uint8_t> rounded(M * kEntries), expected(M * kEntries);
    std::vector<float> least(M), largest(M), low(M), high(M);
    const bool finite = set.find_bounds(ours.data(), M, least.data(), largest.data()) &&
                        kPortable.find_bounds(plain.data(), M, low.data(), high.data());
    set.round_tables(ours.data(), M, least.data(), 3.0, rounded.data());
    kPortable.round_tables(plain.data(), M, low.data(), 3.0, expected.data());
    const bool same = finite && ours == plain && least == low && largest == high && rounded == expected;
    ours[M * kEntries / 2] = NAN;
    return same && !set.find_bounds(ours.data(), M, least.data(), largest.data());
}

bool same_products(const Instructions& set, std::size_t D) {
    const std::size_t width = (D + kLevelRow - 1) / kLevelRow * kLevelRow;
    const auto centroid = numbers<std::int8_t>(width, -127, 127);
    const std::size_t count = 11;
    const auto queries = numbers<std::int16_t>(count * width, -4000, 4000);
    std::vector<std::int32_t> products(count), expected(count);
    set.level_products(centroid.data(), queries.data(), count, width, products.data());
    kPortable.level_products(centroid.data(), queries.data(), count, width, expected.data());
    if (products != expected) return false;
    const auto halves = numbers<std::uint16_t>(D, 0, 0x7bff);  // all that is finite, and zero and what is next to it
    std::vector<float> ours(D), plain(D);
    set.from_halves(halves.data(), D, ours.data());
    kPortable.from_halves(halves.data(), D, plain.data());
    const auto left = floats(D), right = floats(D);
    const double difference = set.product(left.data(), right.data(), D) - kPortable.product(left.data(), right.data(), D);
    return ours == plain && std::abs(difference) < 1e-3;
}

// Sums of products of whole numbers, the largest that there are among them.
bool same_levels(const Instructions& set, std::size_t count, std::size_t asked, std::size_t width) {
    const int most = std::min(32767, static_cast<int>(2147483647 / (128 * width)));
    auto rows = numbers<std::int8_t>(count * width, -128, 127);
    auto queries = numbers<std::int16_t>(asked * width, -most, most);
    std::fill(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(width), std::int8_t{-128});
    std::fill(queries.begin(), queries.begin() + static_cast<std::ptrdiff_t>(width), static_cast<std::int16_t>(-most));
    std::vector<std::int32_t> ours(asked * count, 1), alone(asked, 1), first(asked), expected(asked * count);
    set.row_products(rows.data(), count, queries.data(), asked, width, ours.data());
    set.level_products(rows.data(), queries.data(), asked, width, alone.data());
    for (std::size_t query = 0; query < asked; ++query) {
        for (std::size_t row = 0; row < count; ++row)
            for (std::size_t i = 0; i < width; ++i)
                expected[query * count + row] += queries[query * width + i] * rows[row * width + i];
        first[query] = expected[query * count];
    }
    return ours == expected && alone == first;
}

// Rows taken away one after the other.
bool same_rows(const Instructions& set, std::size_t count, std::size_t size) {
    const auto rows = floats((count + 1) * kEntries);
    std::vector<float> left = floats(size), wanted = left;
    std::vector<const float*> some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(rows.data() + i * kEntries);
    set.subtract_rows(some.data(), count, size, left.data());
    for (const float* row : some)
        for (std::size_t j = 0; j < size; ++j) wanted[j] -= row[j];
    return left == wanted;
}

// The whole search, against plain sums.
bool same_search(std::size_t M, std::size_t documents, std::size_t k) {
    const auto tables = floats(2 * M * kEntries);
    const auto codes = numbers<std::uint8_t>(documents * M, 0, 255);  // one list
    const std::vector<std::int64_t> stops{static_cast<std::int64_t>(documents / 3), static_cast<std::int64_t>(documents)};
    const auto list = Range{0, stops[1], stops.data()};
    const std::vector<float> gains{1.5f, 0.7f};
    const auto found = scan({codes.data(), M, M, nullptr, 0}, tables.data(), {{list}, {list}}, gains, {k, k}, 2, [] { return false; });
    for (std::size_t query = 0; query < 2; ++query) {
        std::vector<float> scores(documents);
        for (std::size_t place = 0; place < documents; ++place) {
            const std::size_t block = place / kBlock * kBlock, rows = std::min(kBlock, documents - block);
            for (std::size_t m = 0; m < M; ++m)
                scores[place] += tables[(query * M + m) * kEntries + codes[block * M + m * rows + place - block]];
            scores[place] *= gains[place < documents / 3 ? 0 : 1];
        }
        std::vector<float> sorted = scores;
        std::sort(sorted.begin(), sorted.end(), std::greater<>());
        const float least = sorted[std::min(k, documents) - 1];
        const auto wanted = std::count_if(scores.begin(), scores.end(), [&](float score) { return score >= least; });
        if (found[query].scores.size() != static_cast<std::size_t>(wanted)) return false;
        for (std::size_t i = 0; i < found[query].scores.size(); ++i)
            if (found[query].scores[i] != scores[static_cast<std::size_t>(found[query].positions[i])]) return false;
    }
    return true;
}

// Lists of queries and owners of documents, against plain products.
bool same_lists(std::size_t M, std::size_t d, std::size_t L) {
    const std::size_t D = M * d, n = 300;
    const auto halves = numbers<std::uint16_t>(L * D, 0x3000, 0x3c00);  // 0.125 to 1
    std::vector<std::int8_t> levels(L * level_width(D));
    std::vector<Level> about(L);
    make_levels(halves.data(), L, D, levels.data(), about.data());
    const auto query = floats(D), words = floats(M * kEntries * d);
    std::vector<float> centroids(L * D), products(L), books(words.size());
    for (std::size_t list = 0; list < L; ++list) {
        kPortable.from_halves(halves.data() + list * D, D, centroids.data() + list * D);
        products[list] = kPortable.product(centroids.data() + list * D, query.data(), D);
    }
    std::vector<std::int64_t> best(L), owners(n);
    best_lists({halves.data(), levels.data(), about.data(), L, D, level_width(D)}, query.data(), 1, L / 2, best.data());
    for (std::size_t i = 1; i < L / 2; ++i)
        if (products[static_cast<std::size_t>(best[i])] > products[static_cast<std::size_t>(best[i - 1])] + 1e-3f) return false;
    for (std::size_t m = 0; m < M; ++m)
        for (std::size_t j = 0; j < kEntries; ++j)
            for (std::size_t i = 0; i < d; ++i) books[(m * d + i) * kEntries + j] = words[(m * kEntries + j) * d + i];
    const Sizes sizes{M, d, kEntries, L};
    std::vector<float> distances(n);
    const auto codes = numbers<std::uint8_t>(n * M, 0, 255);
    Assigner(sizes, centroids.data(), books.data()).nearest(codes.data(), n, 2, owners.data(), distances.data());
    for (std::size_t row = 0; row < n; ++row) {
        double least = 1e30;
        for (std::size_t list = 0; list < L; ++list) {
            double distance = 0.0;
            for (std::size_t i = 0; i < D; ++i)
                distance += std::pow(centroids[list * D + i] - words[(i / d * kEntries + codes[row * M + i / d]) * d + i % d], 2);
            least = std::min(least, distance);
        }
        if (std::abs(least - distances[row]) > 1e-3 * (1.0 + least)) return false;
    }
    return true;
}

bool passes(const Instructions& set) {
    for (const std::size_t documents : {1, 63, 64, 300, 5000})
        for (const std::size_t k : {1, 10, 400})
            if (!same_search(7, documents, k)) return std::printf("%s: searches differ\n", set.name), false;
    if (!same_lists(4, 5, 40) || !same_lists(8, 16, 90)) return std::printf("%s: lists differ\n", set.name), false;
    for (std::size_t M = 1; M <= kWidest; M += 1 + M / 5)
        for (std::size_t rows = 1; rows <= kBlock; rows += 3)
            for (const int threshold : {0, static_cast<int>(M) * 64, static_cast<int>(M) * 80, 65535})
                if (!same_sums(set, M, rows, static_cast<std::uint16_t>(threshold)))
                    return std::printf("%s: sums differ, M %zu, rows %zu\n", set.name, M, rows), false;
    for (const std::size_t M : {1, 5, 48})
        for (const std::size_t d : {1, 7, 16})
            for (const std::size_t K : {1, 100, 256})
                if (!same_tables(set, M, d, K)) return std::printf("%s: tables differ, M %zu\n", set.name, M), false;
    for (std::size_t D = 1; D < 800; D += 1 + D / 4)
        if (!same_products(set, D)) return std::printf("%s: products differ, D %zu\n", set.name, D), false;
    for (const std::size_t asked : {1, 3, 4, 5, 9, 17})
        for (const std::size_t width : {kLevelRow, 2 * kLevelRow, 6 * kLevelRow})
            for (const std::size_t count : {1, 7, 16, 53})
                if (!same_levels(set, count, asked, width)) return std::printf("%s: levels differ, %zu\n", set.name, width), false;
    for (const std::size_t count : {0, 1, 7})
        for (const std::size_t size : {1, 15, 63, 64, 65, 256})
            if (!same_rows(set, count, size)) return std::printf("%s: rows differ, %zu\n", set.name, size), false;
    std::printf("%s: the same\n", set.name);
    return true;
}

}  // namespace

int main() {
    const Instructions& best = instructions();  // or what REPCONC_KERNEL asks for
    return passes(best) ? 0 : 1;
}
