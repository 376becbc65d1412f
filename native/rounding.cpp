#include "rounding.hpp"

#include <algorithm>
#include <cmath>

namespace repconc {
namespace {

constexpr std::size_t kTablesAPart = 8;  // a further part for so many tables, at most: each costs a look-up

// How many parts a table needs where the widest has `parts`.
std::size_t parts_of(double width, double widest, std::size_t parts) {
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(width / widest * static_cast<double>(parts))));
}

}  // namespace

Rounding choose_rounding(const std::vector<double>& widths) {
    Rounding rounding;
    const double widest = *std::max_element(widths.begin(), widths.end());
    if (!(widest > 0.0)) return rounding;
    const std::size_t most = widths.size() / kTablesAPart;
    for (std::size_t parts = most + 1; parts >= 1; --parts) {
        rounding.again.clear();
        for (std::size_t m = 0; m < widths.size() && rounding.again.size() <= most; ++m)
            rounding.again.insert(rounding.again.end(), parts_of(widths[m], widest, parts) - 1, static_cast<std::uint16_t>(m));
        rounding.steps = kHighest * static_cast<double>(parts) / widest;
        if (rounding.again.size() <= most) break;
    }
    return rounding;
}

void round(const float* tables, std::size_t M, const float* least, const Rounding& rounding, std::uint8_t* rounded) {
    std::size_t place = 0;  // in `again`, which is in the order of tables
    for (std::size_t m = 0; m < M; ++m) {
        const float* const table = tables + m * kEntries;
        if (place == rounding.again.size() || rounding.again[place] != m) {
            instructions().round_tables(table, 1, least + m, rounding.steps, rounded + m * kEntries);
            continue;
        }
        std::int32_t levels[kEntries];
        for (std::size_t j = 0; j < kEntries; ++j)
            levels[j] = static_cast<std::int32_t>((static_cast<double>(table[j]) - least[m]) * rounding.steps + 0.5);
        const auto put = [&](std::uint8_t* part, std::int32_t below) {
            for (std::size_t j = 0; j < kEntries; ++j)
                part[j] = static_cast<std::uint8_t>(std::clamp(levels[j] - below, 0, kHighest));
        };
        put(rounded + m * kEntries, 0);
        for (std::int32_t below = kHighest; place < rounding.again.size() && rounding.again[place] == m; ++place, below += kHighest)
            put(rounded + (M + place) * kEntries, below);
    }
}

}  // namespace repconc
