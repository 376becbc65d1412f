// Products of whole numbers: codewords of one byte a dimension with queries of two. Sums of whole numbers are exact in any
// order, so that every machine has the same ones, and two dimensions are multiplied and added by one instruction.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "instructions.hpp"

namespace repconc {
namespace {

// Some tables of as many queries, a part at a time: it stays in registers while all dimensions are added to it.
// Set: a register of sums; how to widen bytes into one, to fill one with two dimensions of a query, and to add products.
template <typename Set, std::size_t together, std::size_t parts>
void sums_together(const std::int8_t* codewords, std::size_t pairs, const std::int16_t* queries, std::int32_t* sums) {
    constexpr std::size_t kWords = sizeof(typename Set::Lanes) / sizeof(std::int32_t);  // codewords a register
    static_assert(kEntries % (parts * kWords) == 0);
    for (std::size_t j = 0; j < kEntries; j += parts * kWords) {
        typename Set::Lanes own[together][parts];
        for (auto& some : own)
            for (auto& lanes : some) lanes = Set::zero();
        for (std::size_t pair = 0; pair < pairs; ++pair) {
            typename Set::Lanes wide[parts];
            for (std::size_t part = 0; part < parts; ++part)
                wide[part] = Set::widen(codewords + 2 * (pair * kEntries + j + part * kWords));
            for (std::size_t query = 0; query < together; ++query) {
                std::int32_t two;
                std::memcpy(&two, queries + 2 * (query * pairs + pair), sizeof two);
                const auto filled = Set::fill(two);
                for (std::size_t part = 0; part < parts; ++part)
                    own[query][part] = Set::add(own[query][part], wide[part], filled);
            }
        }
        for (std::size_t query = 0; query < together; ++query)
            for (std::size_t part = 0; part < parts; ++part)
                std::memcpy(sums + query * kEntries + j + part * kWords, &own[query][part], sizeof own[query][part]);
    }
}

// `together`, `parts` and `alone` are as many as the set has registers for.
template <typename Set, std::size_t together, std::size_t parts, std::size_t alone>
void pair_sums_of(const std::int8_t* codewords, std::size_t pairs, const std::int16_t* queries, std::size_t asked,
                  std::int32_t* sums) {
    std::size_t query = 0;
    for (; query + together <= asked; query += together)
        sums_together<Set, together, parts>(codewords, pairs, queries + 2 * query * pairs, sums + query * kEntries);
    for (; query < asked; ++query)
        sums_together<Set, 1, alone>(codewords, pairs, queries + 2 * query * pairs, sums + query * kEntries);
}

}  // namespace
}  // namespace repconc
