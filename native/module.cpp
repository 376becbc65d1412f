// What Python sees: scan one query over some lists, exactly.
//
// Tables are rounded to bytes for the scan. The rounded sum of a document differs from its exact score by a known bound,
// so that whatever could be among the best k is kept, and scored again with the float tables, for m = 0 .. M - 1.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "scan.hpp"

namespace nb = nanobind;

namespace repconc {
namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Tables = nb::ndarray<const float, nb::shape<-1, 256>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using Halves = nb::ndarray<const std::uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Queries = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

struct Path {
    const char* name;
    BlockSums sums;
    GroupSums group;
    FromHalves from_halves;
    Product product;
};

Path chosen_path() {
    const char* forced = std::getenv("REPCONC_KERNEL");
    const std::string wanted = forced ? forced : "";
#if defined(__x86_64__)
    const bool vbmi = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("bmi2");
    if (vbmi && (wanted.empty() || wanted == "avx512vbmi")) return {"avx512vbmi", block_sums_avx512vbmi, group_sums_avx512vbmi, from_halves_avx512vbmi, product_avx512vbmi};
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (avx2 && (wanted.empty() || wanted == "avx2")) return {"avx2", block_sums_avx2, group_of_blocks<block_sums_avx2>, from_halves_avx2, product_avx2};
#endif
#if defined(__aarch64__)
    if (wanted.empty() || wanted == "neon") return {"neon", block_sums_neon, group_of_blocks<block_sums_neon>, from_halves_portable, product_portable};
#endif
    if (wanted.empty() || wanted == "portable") return {"portable", block_sums_portable, group_of_blocks<block_sums_portable>, from_halves_portable, product_portable};
    throw std::runtime_error("REPCONC_KERNEL asks for '" + wanted + "', which this machine or build does not have.");
}

// Tables as bytes: entry = round((t - least of its table) / step), with one step for all tables.
struct Rounded {
    std::vector<std::uint8_t> tables;
    double margin;  // how far apart two rounded sums must be for their exact order to be certain
};

Rounded round_tables(const float* tables, std::size_t M) {
    Rounded rounded{std::vector<std::uint8_t>(M * 256), 0.0};
    std::vector<float> least(M);
    double widest = 0.0, size = 0.0;
    for (std::size_t m = 0; m < M; ++m) {
        const float* table = tables + m * 256;
        const auto [low, high] = std::minmax_element(table, table + 256);
        least[m] = *low;
        widest = std::max(widest, static_cast<double>(*high) - *low);
        size += std::max(std::abs(static_cast<double>(*low)), std::abs(static_cast<double>(*high)));
    }
    if (!std::isfinite(size)) throw std::invalid_argument("A table holds NaN or an infinite value.");
    const double step = widest / 255.0;
    if (step == 0.0) return rounded.margin = 1.0, rounded;  // all sums are equal, and so are all rounded ones
    for (std::size_t m = 0; m < M; ++m)
        for (std::size_t j = 0; j < 256; ++j) {
            const double units = (static_cast<double>(tables[m * 256 + j]) - least[m]) / step;
            rounded.tables[m * 256 + j] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(units), 0.0, 255.0));
        }
    // Each entry is off by half a step at most, on both sides; and float32 sums round, by less than M * eps * size.
    const double summing = 2.0 * static_cast<double>(M) * std::numeric_limits<float>::epsilon() * size / step;
    rounded.margin = static_cast<double>(M) + summing + 1.0;
    return rounded;
}

struct Candidate {
    std::int64_t position;
    std::uint16_t sum;
};

// The best so far by rounded sums; from time to time all that cannot be among the best k any more is dropped.
class Candidates {
  public:
    Candidates(std::size_t k, double margin) : k_(k), margin_(margin), limit_(std::max<std::size_t>(4 * k, 1024)) {}

    std::uint16_t threshold() const { return threshold_; }

    void add(std::int64_t position, std::uint16_t sum) {
        kept_.push_back({position, sum});
        if (kept_.size() >= limit_) compact();
    }

    const std::vector<Candidate>& finish() {
        compact();
        return kept_;
    }

  private:
    void compact() {
        if (kept_.size() <= k_) return;
        const auto kth = kept_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
        std::nth_element(kept_.begin(), kth, kept_.end(), [](auto& a, auto& b) { return a.sum > b.sum; });
        const double least = std::ceil(kth->sum - margin_);
        if (least > threshold_) threshold_ = static_cast<std::uint16_t>(least);
        const std::uint16_t bound = threshold_;
        kept_.erase(std::remove_if(kept_.begin(), kept_.end(), [bound](auto& one) { return one.sum < bound; }), kept_.end());
        limit_ = std::max(limit_, 2 * kept_.size());  // ties beyond number: do not sort them again and again
    }

    std::size_t k_;
    double margin_;
    std::size_t limit_;
    std::uint16_t threshold_ = 0;
    std::vector<Candidate> kept_;
};

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

template <typename Value>
nb::ndarray<nb::numpy, Value, nb::ndim<1>> as_array(const std::vector<Value>& values) {
    auto* owned = new Value[values.size()];
    std::copy(values.begin(), values.end(), owned);
    nb::capsule owner(owned, [](void* pointer) noexcept { delete[] static_cast<Value*>(pointer); });
    return nb::ndarray<nb::numpy, Value, nb::ndim<1>>(owned, {values.size()}, owner);
}

struct Range {
    std::int64_t start, stop;
};

nb::tuple scan(Bytes codes, Tables tables, Places starts, Places stops, std::size_t k, std::optional<Bytes> allowed) {
    static const Path path = chosen_path();
    const std::size_t M = tables.shape(0), N = M ? codes.shape(0) / M : 0;
    if (M == 0 || M > 257) throw std::invalid_argument("Codes must have 1 to 257 bytes.");
    if (codes.shape(0) % M) throw std::invalid_argument("The codes do not hold whole rows.");
    if (starts.shape(0) != stops.shape(0)) throw std::invalid_argument("There are not as many stops as starts.");
    if (k == 0) throw std::invalid_argument("k is 0; at least one result must be asked for.");
    if (allowed && allowed->shape(0) * 8 < N) throw std::invalid_argument("The bitmap is shorter than the codes.");
    std::vector<Range> ranges(starts.shape(0));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        ranges[i] = {starts.data()[i], stops.data()[i]};
        if (ranges[i].start < 0 || ranges[i].stop < ranges[i].start || ranges[i].stop > static_cast<std::int64_t>(N))
            throw std::invalid_argument("A range lies outside of the codes.");
    }
    std::vector<std::int64_t> positions;
    std::vector<float> scores;
    {
        nb::gil_scoped_release unlocked;
        const Rounded rounded = round_tables(tables.data(), M);
        Candidates candidates(k, rounded.margin);
        std::uint16_t sums[kGroup * kBlock];
        std::uint64_t above[kGroup];
        const auto take = [&](std::uint64_t found, std::int64_t start, const std::uint16_t* values) {
            if (found && allowed) found &= bits_at(allowed->data(), allowed->shape(0), start);
            for (; found; found &= found - 1) {
                const int row = __builtin_ctzll(found);
                if (values[row] >= candidates.threshold()) candidates.add(start + row, values[row]);
            }
        };
        constexpr auto group = static_cast<std::int64_t>(kGroup * kBlock), block = static_cast<std::int64_t>(kBlock);
        for (const Range& range : ranges) {
            std::int64_t start = range.start;
            for (; start + group <= range.stop; start += group) {
                const std::uint8_t* here = codes.data() + static_cast<std::size_t>(start) * M;
                path.group(here, M, rounded.tables.data(), candidates.threshold(), above, sums);
                for (std::size_t part = 0; part < kGroup; ++part)
                    take(above[part], start + static_cast<std::int64_t>(part) * block, sums + part * kBlock);
            }
            for (; start < range.stop; start += block) {
                const auto rows = static_cast<std::size_t>(std::min(block, range.stop - start));
                const std::uint8_t* here = codes.data() + static_cast<std::size_t>(start) * M;
                take(path.sums(here, M, rows, rounded.tables.data(), candidates.threshold(), sums), start, sums);
            }
        }
        // Exact scores. A candidate's block is found from its list: blocks begin anew at the start of each.
        std::vector<Candidate> kept = candidates.finish();
        std::sort(ranges.begin(), ranges.end(), [](auto& a, auto& b) { return a.start < b.start; });
        for (const Candidate& one : kept) {
            const auto after = std::upper_bound(ranges.begin(), ranges.end(), one.position,
                                                [](std::int64_t place, auto& range) { return place < range.start; });
            auto range = after - 1;
            while (range->stop <= one.position) --range;  // empty ranges may begin at the same place
            const std::int64_t first = range->start + (one.position - range->start) / block * block;  // of its block
            const auto rows = static_cast<std::size_t>(std::min(block, range->stop - first));
            const std::uint8_t* code = codes.data() + static_cast<std::size_t>(first) * M + (one.position - first);
            float total = 0.0f;
            for (std::size_t m = 0; m < M; ++m) total += tables.data()[m * 256 + code[m * rows]];
            positions.push_back(one.position);
            scores.push_back(total);
        }
        if (scores.size() > k) {
            std::vector<float> sorted = scores;
            std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k - 1), sorted.end(),
                             std::greater<float>());
            const float kth = sorted[k - 1];
            std::size_t left = 0;
            for (std::size_t i = 0; i < scores.size(); ++i)
                if (scores[i] >= kth) positions[left] = positions[i], scores[left] = scores[i], ++left;
            positions.resize(left), scores.resize(left);
        }
    }
    return nb::make_tuple(as_array(positions), as_array(scores));
}

// [B, L]: the inner products of all queries with all centroids.
nb::object half_products(Halves centroids, Queries queries) {
    static const Path path = chosen_path();
    const std::size_t L = centroids.shape(0), D = centroids.shape(1), B = queries.shape(0);
    if (D != queries.shape(1)) throw std::invalid_argument("Centroids and queries differ in dimension.");
    auto* products = new float[B * L];
    nb::capsule owner(products, [](void* pointer) noexcept { delete[] static_cast<float*>(pointer); });
    {
        nb::gil_scoped_release unlocked;
        std::vector<float> row(D);
        for (std::size_t list = 0; list < L; ++list) {
            path.from_halves(centroids.data() + list * D, D, row.data());
            for (std::size_t query = 0; query < B; ++query)
                products[query * L + list] = path.product(row.data(), queries.data() + query * D, D);
        }
    }
    return nb::cast(nb::ndarray<nb::numpy, float, nb::ndim<2>>(products, {B, L}, owner));
}

}  // namespace

NB_MODULE(_kernel, module) {
    module.doc() = "The native scan; see docs/kernel.md.";
    module.def("scan", &scan, nb::arg("codes").noconvert(), nb::arg("tables").noconvert(), nb::arg("starts").noconvert(),
               nb::arg("stops").noconvert(), nb::arg("k"), nb::arg("allowed").noconvert() = nb::none());
    module.def("half_products", &half_products, nb::arg("centroids").noconvert(), nb::arg("queries").noconvert());
    module.def("path", [] { return std::string(chosen_path().name); });
}

}  // namespace repconc
