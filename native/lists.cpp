// Centroids are half floats; a copy of one byte a dimension is half as long to read. Its products are off by a known bound,
// so that it is enough to compute those exactly that could be among the best.

#include "lists.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "instructions.hpp"

namespace repconc {
namespace {

double norm_of(const float* row, std::size_t D) {
    double total = 0.0;
    for (std::size_t i = 0; i < D; ++i) total += static_cast<double>(row[i]) * row[i];
    return std::sqrt(total);
}

// A query as whole numbers, small enough that sums of products with bytes fit into 32 bits.
struct WholeQuery {
    std::vector<std::int16_t> levels;
    double scale = 0.0, error = 0.0, norm = 0.0;

    WholeQuery(const float* query, std::size_t D, std::size_t width) : levels(width) {
        float largest = 0.0f;
        for (std::size_t i = 0; i < D; ++i) largest = std::max(largest, std::abs(query[i]));
        if (largest == 0.0f) return;
        const double limit = std::min(32767.0, std::floor(2147483647.0 / (127.0 * static_cast<double>(width))));
        scale = largest / limit;
        double rest = 0.0;
        for (std::size_t i = 0; i < D; ++i) {
            levels[i] = static_cast<std::int16_t>(std::nearbyint(query[i] / scale));
            rest += std::pow(query[i] - scale * levels[i], 2);
        }
        error = std::sqrt(rest);
        norm = norm_of(query, D);
    }
};

float or_least(float value) { return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value; }

struct Scored {
    float score;
    std::int64_t list;
};

// products: [L], of the levels.
void choose(const Centroids& centroids, const float* query, const WholeQuery& whole, const std::int32_t* products,
            std::size_t count, std::int64_t* best) {
    std::vector<float> lowest(centroids.L), highest(centroids.L);
    const double rounding = static_cast<double>(centroids.D + 8) * std::numeric_limits<float>::epsilon();
    for (std::size_t list = 0; list < centroids.L; ++list) {
        const Level& about = centroids.about[list];
        const double product = products[list] * whole.scale * about.scale;
        const double bound = whole.norm * (about.error + rounding * about.norm) + whole.error * (about.norm + about.error);
        lowest[list] = or_least(static_cast<float>(product - bound));
        highest[list] = static_cast<float>(product + bound);
    }
    std::vector<float> sorted = lowest;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count - 1), sorted.end(), std::greater<>());
    const float least = sorted[count - 1];
    std::vector<Scored> kept;
    std::vector<float> row(centroids.D);
    for (std::size_t list = 0; list < centroids.L; ++list) {
        if (highest[list] < least) continue;
        instructions().from_halves(centroids.halves + list * centroids.D, centroids.D, row.data());
        kept.push_back({or_least(instructions().product(row.data(), query, centroids.D)), static_cast<std::int64_t>(list)});
    }
    std::partial_sort(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count), kept.end(),
                      [](auto& a, auto& b) { return a.score != b.score ? a.score > b.score : a.list < b.list; });
    for (std::size_t i = 0; i < count; ++i) best[i] = kept[i].list;
}

}  // namespace

std::size_t level_width(std::size_t D) { return (D + kLevelRow - 1) / kLevelRow * kLevelRow; }

void make_levels(const std::uint16_t* halves, std::size_t L, std::size_t D, std::int8_t* levels, Level* about) {
    const std::size_t width = level_width(D);
    std::vector<float> row(D), rest(D);
    std::fill(levels, levels + L * width, std::int8_t{0});
    for (std::size_t list = 0; list < L; ++list, levels += width) {
        instructions().from_halves(halves + list * D, D, row.data());
        float largest = 0.0f;
        for (const float value : row) largest = std::max(largest, std::abs(value));
        const float scale = largest / 127.0f;
        for (std::size_t i = 0; i < D; ++i) {
            if (scale > 0.0f) levels[i] = static_cast<std::int8_t>(std::nearbyint(row[i] / scale));
            rest[i] = row[i] - scale * levels[i];
        }
        constexpr double kUp = 1.0 + 1e-6;  // float would round down
        about[list] = {scale, static_cast<float>(norm_of(rest.data(), D) * kUp), static_cast<float>(norm_of(row.data(), D) * kUp)};
    }
}

void best_lists(const Centroids& centroids, const float* queries, std::size_t B, std::size_t count, std::int64_t* best) {
    std::vector<WholeQuery> whole;
    for (std::size_t query = 0; query < B; ++query) whole.emplace_back(queries + query * centroids.D, centroids.D, centroids.width);
    std::unique_ptr<std::int32_t[]> products(new std::int32_t[B * centroids.L]);
    for (std::size_t list = 0; list < centroids.L; ++list)  // a centroid is read once for all queries
        for (std::size_t query = 0; query < B; ++query)
            products[query * centroids.L + list] = instructions().level_product(
                centroids.levels + list * centroids.width, whole[query].levels.data(), centroids.width);
    for (std::size_t query = 0; query < B; ++query)
        choose(centroids, queries + query * centroids.D, whole[query], products.get() + query * centroids.L, count,
               best + query * count);
}

}  // namespace repconc
