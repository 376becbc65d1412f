// One level of a beam search for additive codes, from products alone: no residual is ever formed.
//
// What a codeword c adds to a partial code of a document x is <x - (codewords so far), c> - |c|^2 / 2. Products of documents
// and codewords, and of codewords with each other, are matrices that were made before; here rows of them are taken from
// each other, K numbers for each codeword that a partial code has, however many dimensions there are.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "highest.hpp"
#include "instructions.hpp"

namespace repconc {

// n documents, b partial codes of m bytes each, K codewords a level.
struct Partial {
    std::size_t n, b, m, K;
    const std::uint8_t* codes;  // [n, b, m]
    const float* gained;        // [n, b]
};

// products: [n, K], <x, c> - |c|^2 / 2; between: [m, K, K], those of the codewords before with the new ones.
// Gives the best codes [n, count, m + 1] and what they gained [n, count], the best first. count <= b * K
inline void lengthen(const Partial& partial, const float* products, const float* between, std::size_t count,
                     std::uint8_t* codes, float* gained) {
    const std::size_t b = partial.b, m = partial.m, K = partial.K;
    std::vector<float> common(K), totals(b * K);
    std::vector<const float*> rows(m);
    std::vector<std::int64_t> places(count);
    for (std::size_t document = 0; document < partial.n; ++document) {
        const std::uint8_t* const own = partial.codes + document * b * m;
        std::size_t shared = 0;  // bytes in which all partial codes agree: mostly all but the last few
        const auto agree = [&](std::size_t byte) {
            for (std::size_t one = 1; one < b; ++one)
                if (own[one * m + byte] != own[byte]) return false;
            return true;
        };
        while (shared < m && agree(shared)) ++shared;
        const auto take = [&](const std::uint8_t* code, std::size_t start, std::size_t stop, float* from) {
            for (std::size_t byte = start; byte < stop; ++byte) rows[byte] = between + (byte * K + code[byte]) * K;
            instructions().subtract_rows(rows.data() + start, stop - start, K, from);
        };
        std::copy_n(products + document * K, K, common.begin());
        take(own, 0, shared, common.data());
        for (std::size_t one = 0; one < b; ++one) {
            float* const total = totals.data() + one * K;
            for (std::size_t j = 0; j < K; ++j) total[j] = common[j] + partial.gained[document * b + one];
            take(own + one * m, shared, m, total);
        }
        highest(totals.data(), b * K, count, places.data());
        for (std::size_t one = 0; one < count; ++one) {
            const std::size_t place = static_cast<std::size_t>(places[one]), row = document * count + one;
            std::uint8_t* const code = codes + row * (m + 1);
            std::copy_n(own + place / K * m, m, code);
            code[m] = static_cast<std::uint8_t>(place % K);
            gained[row] = totals[place];
        }
    }
}

}  // namespace repconc
