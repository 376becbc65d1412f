// Tables of a query: plain loops over whole rows, which compilers turn into the widest instructions that a file may use.
// Each file that includes this gets its own copies, hence the namespace without a name.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

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

struct Bounds {
    float low, high;
    bool finite;
};

// Of one table. Sixteen lanes: a chain of minima would wait for each one.
Bounds bounds_of(const float* table) {
    constexpr std::size_t kLanes = 16;
    float low[kLanes], high[kLanes], nothing[kLanes] = {};
    std::copy(table, table + kLanes, low);
    std::copy(table, table + kLanes, high);
    for (std::size_t j = 0; j < kEntries; j += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const float entry = table[j + lane];
            low[lane] = entry < low[lane] ? entry : low[lane];
            high[lane] = entry > high[lane] ? entry : high[lane];
            nothing[lane] += entry * 0.0f;  // NaN where the entry is not finite
        }
    const bool finite = std::all_of(nothing, nothing + kLanes, [](float value) { return value == 0.0f; });
    return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes), finite};
}

double round_tables(const float* tables, std::size_t M, std::uint8_t* rounded) {
    float least[kWidest];
    double widest = 0.0, size = 0.0;
    for (std::size_t m = 0; m < M; ++m) {
        const Bounds bounds = bounds_of(tables + m * kEntries);
        if (!bounds.finite) return std::numeric_limits<double>::quiet_NaN();
        const double low = bounds.low, high = bounds.high;
        least[m] = bounds.low;
        widest = std::max(widest, high - low);
        size += std::max(std::abs(low), std::abs(high));
    }
    if (widest == 0.0) return std::fill(rounded, rounded + M * kEntries, std::uint8_t{0}), 1.0;  // all sums are equal
    const double steps = 255.0 / widest;  // in one unit
    for (std::size_t m = 0; m < M; ++m)
        for (std::size_t j = 0; j < kEntries; ++j) {
            const double units = (static_cast<double>(tables[m * kEntries + j]) - least[m]) * steps;
            rounded[m * kEntries + j] = static_cast<std::uint8_t>(static_cast<std::int32_t>(units + 0.5));
        }
    // Each entry is off by half a step at most, on both sides; and float32 sums round, by less than M * eps * size.
    const double summing = 2.0 * static_cast<double>(M) * std::numeric_limits<float>::epsilon() * size * steps;
    return static_cast<double>(M) + summing + 1.0;
}

}  // namespace
}  // namespace repconc
