// Products of rows of bytes with queries of 16-bit numbers, for tables of additive codes. Sums of whole numbers are exact in
// any order, so that every machine has the same ones.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "instructions.hpp"

namespace repconc {
namespace {

// Set: a register of sums; how to widen bytes into one, to load a query, to add products, to add two registers, and to add up
// what is in each of `kSums` of them. Both functions give how many rows were done; fewer than a set takes together are left.

// One query: rows one after the other, as they lie in memory. Each has two sums, so that additions need not wait.
template <typename Set>
std::size_t products_with_one(const std::int8_t* rows, std::size_t count, const std::int16_t* query, std::size_t width,
                              std::int32_t* sums) {
    std::size_t done = 0;
    for (; done + Set::kSums <= count; done += Set::kSums) {
        typename Set::Lanes own[Set::kSums];
        for (auto& lanes : own) {
            auto even = Set::zero(), odd = Set::zero();
            for (std::size_t i = 0; i < width; i += 2 * Set::kDimensions) {
                even = Set::add(even, Set::widen(rows + i), Set::load(query + i));
                odd = Set::add(odd, Set::widen(rows + i + Set::kDimensions), Set::load(query + i + Set::kDimensions));
            }
            lanes = Set::plus(even, odd);
            rows += width;
        }
        Set::add_up(own, sums + done);
    }
    return done;
}

// Some queries: a few rows at the same time, each of which is widened once for all queries.
template <typename Set, std::size_t together>
std::size_t products_with_some(const std::int8_t* rows, std::size_t count, const std::int16_t* queries, std::size_t width,
                               std::int32_t* sums) {
    constexpr std::size_t kRows = Set::kSums / together;
    std::size_t done = 0;
    for (; done + kRows <= count; done += kRows, rows += kRows * width) {
        typename Set::Lanes own[Set::kSums];  // query by query
        for (auto& lanes : own) lanes = Set::zero();
        for (std::size_t i = 0; i < width; i += Set::kDimensions) {
            typename Set::Lanes asked[together];
            for (std::size_t query = 0; query < together; ++query) asked[query] = Set::load(queries + query * width + i);
            for (std::size_t row = 0; row < kRows; ++row) {
                const auto wide = Set::widen(rows + row * width + i);
                for (std::size_t query = 0; query < together; ++query)
                    own[query * kRows + row] = Set::add(own[query * kRows + row], wide, asked[query]);
            }
        }
        std::int32_t totals[Set::kSums];
        Set::add_up(own, totals);
        for (std::size_t query = 0; query < together; ++query)
            std::memcpy(sums + query * count + done, totals + query * kRows, kRows * sizeof(std::int32_t));
    }
    return done;
}

// product: of a row with a query, for the rows that are left.
template <typename Set, std::size_t together, auto product>
void row_products_of(const std::int8_t* rows, std::size_t count, const std::int16_t* queries, std::size_t asked,
                     std::size_t width, std::int32_t* sums) {
    while (asked > 0) {
        const std::size_t now = asked < together ? 1 : together;
        const std::size_t done = now == 1 ? products_with_one<Set>(rows, count, queries, width, sums)
                                          : products_with_some<Set, together>(rows, count, queries, width, sums);
        for (std::size_t query = 0; query < now; ++query)
            for (std::size_t row = done; row < count; ++row)
                sums[query * count + row] = product(rows + row * width, queries + query * width, width);
        queries += now * width;
        sums += now * count;
        asked -= now;
    }
}

}  // namespace
}  // namespace repconc
