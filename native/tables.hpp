// Tables of a query: plain loops over whole rows, which compilers turn into the widest instructions that a file may use.
// Each file that includes this gets its own copies, hence the namespace without a name.

#pragma once

#include <algorithm>

#include "instructions.hpp"

namespace repconc {
namespace {

void make_tables(const float* codebooks, const float* query, std::size_t M, std::size_t d, std::size_t K, float* tables) {
    for (std::size_t m = 0; m < M; ++m) {
        float* const table = tables + m * kEntries;
        std::fill(table, table + kEntries, 0.0f);
        for (std::size_t i = m * d; i < (m + 1) * d; ++i)
            for (std::size_t j = 0; j < K; ++j) table[j] += query[i] * codebooks[i * K + j];
        std::fill(table + K, table + kEntries, table[K - 1]);
    }
}

// A part of a table stays in registers while all rows are added to it.
void add_products(const float* rows, std::size_t count, const float* query, float* table) {
    typedef float Lanes __attribute__((vector_size(64), aligned(4)));
    constexpr std::size_t kLanes = 16, kPart = 64;
    for (std::size_t j = 0; j < kEntries; j += kPart) {
        Lanes* const own = reinterpret_cast<Lanes*>(table + j);
        Lanes first = own[0], second = own[1], third = own[2], fourth = own[3];
        for (std::size_t i = 0; i < count; ++i) {
            const Lanes* const row = reinterpret_cast<const Lanes*>(rows + i * kEntries + j);
            first += query[i] * row[0], second += query[i] * row[1];
            third += query[i] * row[2], fourth += query[i] * row[3];
        }
        own[0] = first, own[1] = second, own[2] = third, own[3] = fourth;
    }
    static_assert(kEntries % kPart == 0 && kPart == 4 * kLanes);
}

// As above, a part at a time.
void subtract_rows(const float* const* rows, std::size_t count, std::size_t size, float* from) {
    typedef float Lanes __attribute__((vector_size(64), aligned(4)));
    constexpr std::size_t kPart = 64;
    std::size_t j = 0;
    for (; j + kPart <= size; j += kPart) {
        Lanes* const own = reinterpret_cast<Lanes*>(from + j);
        Lanes first = own[0], second = own[1], third = own[2], fourth = own[3];
        for (std::size_t i = 0; i < count; ++i) {
            const Lanes* const row = reinterpret_cast<const Lanes*>(rows[i] + j);
            first -= row[0], second -= row[1], third -= row[2], fourth -= row[3];
        }
        own[0] = first, own[1] = second, own[2] = third, own[3] = fourth;
    }
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t rest = j; rest < size; ++rest) from[rest] -= rows[i][rest];
}

// Sixteen lanes: a chain of minima would wait for each one.
bool find_bounds(const float* tables, std::size_t M, float* least, float* largest) {
    constexpr std::size_t kLanes = 16;
    float nothing[kLanes] = {};
    for (std::size_t m = 0; m < M; ++m, tables += kEntries) {
        float low[kLanes], high[kLanes];
        std::copy(tables, tables + kLanes, low);
        std::copy(tables, tables + kLanes, high);
        for (std::size_t j = 0; j < kEntries; j += kLanes)
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                const float entry = tables[j + lane];
                low[lane] = entry < low[lane] ? entry : low[lane];
                high[lane] = entry > high[lane] ? entry : high[lane];
                nothing[lane] += entry * 0.0f;  // NaN where the entry is not finite
            }
        least[m] = *std::min_element(low, low + kLanes);
        largest[m] = *std::max_element(high, high + kLanes);
    }
    return std::all_of(nothing, nothing + kLanes, [](float value) { return value == 0.0f; });
}

void round_tables(const float* tables, std::size_t M, const float* least, double steps, std::uint8_t* rounded) {
    for (std::size_t m = 0; m < M; ++m, tables += kEntries, rounded += kEntries) {
        const double zero = least[m];
        for (std::size_t j = 0; j < kEntries; ++j)
            rounded[j] = static_cast<std::uint8_t>(static_cast<std::int32_t>((tables[j] - zero) * steps + 0.5));
    }
}

}  // namespace
}  // namespace repconc
