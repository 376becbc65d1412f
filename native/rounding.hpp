// Tables as bytes, one step for all of them, so that their entries can be added up.
//
// A table that is much wider than the others would make the step coarse for all. It is cut into parts of kHighest steps
// each, which are looked up one after the other: an entry of 300 is 127 + 127 + 46.

#pragma once

#include <cstdint>
#include <vector>

#include "instructions.hpp"

namespace repconc {

struct Rounding {
    double steps = 0.0;                // in one unit; none where all entries of each table are equal
    std::vector<std::uint16_t> again;  // the parts beyond the first, by the number of their table

    std::size_t tables(std::size_t M) const { return M + again.size(); }
};

// The finest step that does not ask for many more look-ups. widths: the largest entry of each table less its least.
Rounding choose_rounding(const std::vector<double>& widths);

// Tables [M][256] to [rounding.tables(M)][256]: first parts in their own places, the others behind. Each entry is off by half a
// step at most. least: the least entry of each table, which becomes zero.
void round(const float* tables, std::size_t M, const float* least, const Rounding& rounding, std::uint8_t* rounded);

}  // namespace repconc
