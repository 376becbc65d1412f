// What Python sees. Arrays are looked at here, so that the rest can trust them; the interpreter runs on meanwhile.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "assign.hpp"
#include "beam.hpp"
#include "highest.hpp"
#include "instructions.hpp"
#include "lists.hpp"
#include "scan.hpp"
#include "whole.hpp"

namespace nb = nanobind;

namespace repconc {
namespace {

template <typename Value, int dimensions>
using Input = nb::ndarray<const Value, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// Bytes of a mapped file may begin anywhere; numbers may not.
template <typename... Arrays>
void require_aligned(const Arrays&... arrays) {
    if (((reinterpret_cast<std::uintptr_t>(arrays.data()) % alignof(decltype(*arrays.data()))) || ...))
        throw std::invalid_argument("An array does not begin where its numbers may begin.");
}

template <typename Value>
using Output = nb::ndarray<nb::numpy, Value>;

// A new array; its memory is Python's from now on.
template <typename Value>
Output<Value> make_array(std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t length : shape) size *= length;
    auto* values = new Value[size];
    nb::capsule owner(values, [](void* pointer) noexcept { delete[] static_cast<Value*>(pointer); });
    return Output<Value>(values, shape, owner);
}

void require(bool fine, const char* otherwise) {
    if (!fine) throw std::invalid_argument(otherwise);
}

bool interrupted() {
    nb::gil_scoped_acquire locked;
    return PyErr_CheckSignals() != 0;
}

// The lists of each query, each of them one class after the other.
std::vector<std::vector<Range>> ranges_of(const Input<std::int64_t, 2>& starts, const Input<std::int64_t, 2>& stops,
                                          std::size_t classes, std::size_t documents) {
    std::vector<std::vector<Range>> lists(starts.shape(0), std::vector<Range>(starts.shape(1) / classes));
    const std::int64_t *start = starts.data(), *stop = stops.data();
    for (auto& own : lists)
        for (Range& range : own) {
            range = {start[0], stop[classes - 1], stop};
            require(0 <= range.start && range.stop <= static_cast<std::int64_t>(documents), "A list lies outside of the codes.");
            for (std::size_t kind = 0; kind < classes; ++kind)
                require(start[kind] <= stop[kind] && (kind == 0 || start[kind] == stop[kind - 1]),
                        "The classes of a list do not lie one after the other.");
            start += classes, stop += classes;
        }
    return lists;
}

// Where the results of each query end, their positions and their scores.
nb::tuple scan_codes(Input<std::uint8_t, 1> codes, Input<float, 3> tables, Input<std::int64_t, 2> starts,
                     Input<std::int64_t, 2> stops, std::size_t k, std::optional<Input<std::uint8_t, 1>> allowed,
                     std::size_t threads, Input<float, 1> gains, std::size_t first, std::size_t depth) {
    require_aligned(tables, starts, stops, gains);
    const std::size_t B = tables.shape(0), M = tables.shape(1);
    require(M >= 1 && M <= kWidest, "Codes must have 1 to 257 bytes.");
    require(tables.shape(2) == kEntries, "Tables must have 256 entries.");
    require(codes.shape(0) % M == 0, "The codes do not hold whole rows.");
    require(starts.shape(0) == B && stops.shape(0) == B, "There are not as many rows of lists as tables.");
    require(starts.shape(1) == stops.shape(1), "There are not as many stops as starts.");
    require(k >= 1, "k is 0; at least one result must be asked for.");
    require(first >= 1 && first <= M, "A code does not have as many first bytes.");
    const std::size_t classes = gains.shape(0);
    require(classes >= 1 && classes <= kEntries && starts.shape(1) % classes == 0, "Lists and gains do not fit together.");
    for (std::size_t place = 0; place < classes; ++place)
        require(std::isnormal(gains.data()[place]) && gains.data()[place] > 0.0f, "A gain is no positive number.");
    const std::size_t documents = codes.shape(0) / M;
    require(!allowed || allowed->shape(0) * 8 >= documents, "The bitmap is shorter than the codes.");
    const auto lists = ranges_of(starts, stops, classes, documents);
    const Codes where{codes.data(), M, first, allowed ? allowed->data() : nullptr, allowed ? allowed->shape(0) : 0};
    const std::vector<float> multiplied(gains.data(), gains.data() + classes);
    std::vector<Found> found;
    {
        nb::gil_scoped_release unlocked;
        found = scan(where, tables.data(), lists, multiplied, {k, std::min(depth, documents)}, threads, interrupted);
    }
    if (PyErr_Occurred()) throw nb::python_error();
    std::size_t total = 0;
    for (const Found& one : found) total += one.scores.size();
    auto ends = make_array<std::int64_t>({B});
    auto positions = make_array<std::int64_t>({total});
    auto scores = make_array<float>({total});
    total = 0;
    for (std::size_t query = 0; query < B; ++query) {
        std::copy(found[query].positions.begin(), found[query].positions.end(), positions.data() + total);
        std::copy(found[query].scores.begin(), found[query].scores.end(), scores.data() + total);
        ends.data()[query] = static_cast<std::int64_t>(total += found[query].scores.size());
    }
    return nb::make_tuple(ends, positions, scores);
}

// [B, M, 256]. codebooks: [M, d, K], a row for each dimension.
Output<float> tables_of(Input<float, 3> codebooks, Input<float, 3> queries) {
    require_aligned(codebooks, queries);
    const std::size_t M = codebooks.shape(0), d = codebooks.shape(1), K = codebooks.shape(2), B = queries.shape(0);
    require(queries.shape(1) == M && queries.shape(2) == d, "Codebooks and queries differ in dimension.");
    require(M >= 1 && d >= 1, "Codebooks hold nothing.");
    require(K >= 1 && K <= kEntries, "A codebook must have 1 to 256 codewords.");
    auto tables = make_array<float>({B, M, kEntries});
    nb::gil_scoped_release unlocked;
    for (std::size_t query = 0; query < B; ++query)
        instructions().make_tables(codebooks.data(), queries.data() + query * M * d, M, d, K,
                                   tables.data() + query * M * kEntries);
    return tables;
}

// [B, M, K]. codewords: [M, K, width], zeros behind their D dimensions; what one of their units stands for: [M, K].
Output<float> additive_tables_of(Input<std::int8_t, 3> codewords, Input<float, 2> scales, Input<float, 2> queries) {
    require_aligned(scales, queries);
    const std::size_t M = codewords.shape(0), K = codewords.shape(1), width = codewords.shape(2);
    const std::size_t B = queries.shape(0), D = queries.shape(1);
    require(level_width(D) == width, "Codebooks and queries differ in dimension.");
    require(scales.shape(0) == M && scales.shape(1) == K, "There are not as many scales as codewords.");
    require(D <= kWidestSum, "The sums of so many dimensions do not fit into 32 bits.");
    auto tables = make_array<float>({B, M, K});
    nb::gil_scoped_release unlocked;
    std::vector<std::int16_t> whole(B * width);
    std::vector<double> units(B);
    std::vector<std::int32_t> sums(B * K);
    for (std::size_t query = 0; query < B; ++query)
        units[query] = to_whole(queries.data() + query * D, D, whole.data() + query * width);
    for (std::size_t m = 0; m < M; ++m) {  // a codebook is read from memory once for all queries
        instructions().row_products(codewords.data() + m * K * width, K, whole.data(), B, width, sums.data());
        for (std::size_t query = 0; query < B; ++query)
            for (std::size_t j = 0; j < K; ++j)
                tables.data()[(query * M + m) * K + j] =
                    static_cast<float>(sums[query * K + j] * units[query] * scales.data()[m * K + j]);
    }
    return tables;
}

// Centroids as bytes [L, width], and what is known of each [L, 3].
nb::tuple levels_of(Input<std::uint16_t, 2> centroids) {
    require_aligned(centroids);
    const std::size_t L = centroids.shape(0), D = centroids.shape(1);
    require(std::none_of(centroids.data(), centroids.data() + L * D, [](auto half) { return (half & 0x7c00) == 0x7c00; }),
            "A centroid is no finite number.");
    auto levels = make_array<std::int8_t>({L, level_width(D)});
    auto about = make_array<float>({L, 3});
    static_assert(sizeof(Level) == 3 * sizeof(float));
    {
        nb::gil_scoped_release unlocked;
        make_levels(centroids.data(), L, D, levels.data(), reinterpret_cast<Level*>(about.data()));
    }
    return nb::make_tuple(levels, about);
}

// [B, count]
Output<std::int64_t> lists_of(Input<std::uint16_t, 2> centroids, Input<std::int8_t, 2> levels, Input<float, 2> about,
                              Input<float, 2> queries, std::size_t count) {
    require_aligned(centroids, about, queries);
    const std::size_t L = centroids.shape(0), D = centroids.shape(1), B = queries.shape(0);
    require(queries.shape(1) == D, "Centroids and queries differ in dimension.");
    require(levels.shape(0) == L && levels.shape(1) == level_width(D) && about.shape(0) == L && about.shape(1) == 3,
            "The levels are not those of the centroids.");
    require(count >= 1 && count <= L, "There are not so many lists.");
    auto best = make_array<std::int64_t>({B, count});
    const Centroids all{centroids.data(), levels.data(), reinterpret_cast<const Level*>(about.data()), L, D, level_width(D)};
    nb::gil_scoped_release unlocked;
    best_lists(all, queries.data(), B, count, best.data());
    return best;
}

// centroids: [L, M * d]; codebooks: [M, d, K]
void make_assigner(Assigner* assigner, Input<float, 2> centroids, Input<float, 3> codebooks) {
    require_aligned(centroids, codebooks);
    const Sizes sizes{codebooks.shape(0), codebooks.shape(1), codebooks.shape(2), centroids.shape(0)};
    require(sizes.M >= 1 && sizes.M <= kWidest, "Codes must have 1 to 257 bytes.");
    require(sizes.K >= 1 && sizes.K <= kEntries, "A codebook must have 1 to 256 codewords.");
    require(sizes.L >= 1 && centroids.shape(1) == sizes.M * sizes.d, "Centroids and codebooks differ in dimension.");
    nb::gil_scoped_release unlocked;
    new (assigner) Assigner(sizes, centroids.data(), codebooks.data());
}

// The nearest list of each document [n], and its squared distance [n].
nb::tuple nearest_lists(const Assigner& assigner, Input<std::uint8_t, 2> codes, std::size_t threads) {
    const std::size_t n = codes.shape(0), M = assigner.sizes.M;
    require(codes.shape(1) == M, "Codes and codebooks differ in bytes.");
    require(std::all_of(codes.data(), codes.data() + n * M, [&](auto code) { return code < assigner.sizes.K; }),
            "A code is larger than its codebook.");
    auto owners = make_array<std::int64_t>({n});
    auto distances = make_array<float>({n});
    {
        nb::gil_scoped_release unlocked;
        assigner.nearest(codes.data(), n, threads, owners.data(), distances.data());
    }
    return nb::make_tuple(owners, distances);
}

// [n, count]: where the highest values of each row are, the highest first; of equal ones the first.
Output<std::int64_t> highest_of(Input<float, 2> values, std::size_t count) {
    require_aligned(values);
    const std::size_t n = values.shape(0), size = values.shape(1);
    require(1 <= count && count <= size, "A row has not so many values.");
    auto places = make_array<std::int64_t>({n, count});
    nb::gil_scoped_release unlocked;
    for (std::size_t row = 0; row < n; ++row)
        highest(values.data() + row * size, size, count, places.data() + row * count);
    return places;
}

// Codes [n, b, m] of documents, one byte longer: the best [n, count, m + 1], and what they gained [n, count].
nb::tuple lengthen_codes(Input<float, 2> products, Input<float, 3> between, Input<std::uint8_t, 3> codes,
                         Input<float, 2> gained, std::size_t count) {
    require_aligned(products, between, gained);
    const std::size_t n = codes.shape(0), b = codes.shape(1), m = codes.shape(2), K = products.shape(1);
    require(products.shape(0) == n && gained.shape(0) == n && gained.shape(1) == b && b >= 1,
            "There are not as many products as documents.");
    require(1 <= K && K <= kEntries, "A codebook must have 1 to 256 codewords.");
    require(between.shape(0) == m && between.shape(1) == K && between.shape(2) == K,
            "The products of codewords are not those of the codes.");
    require(1 <= count && count <= b * K, "There are not so many codes.");
    require(std::all_of(codes.data(), codes.data() + n * b * m, [&](auto code) { return code < K; }),
            "A code is larger than its codebook.");
    auto longer = make_array<std::uint8_t>({n, count, m + 1});
    auto gains = make_array<float>({n, count});
    {
        nb::gil_scoped_release unlocked;
        lengthen({n, b, m, K, codes.data(), gained.data()}, products.data(), between.data(), count, longer.data(), gains.data());
    }
    return nb::make_tuple(longer, gains);
}

// Pieces of UTF-8 as a list of strings.
nb::list strings_of(Input<std::uint8_t, 1> content, Input<std::int64_t, 1> starts, Input<std::int64_t, 1> stops) {
    require_aligned(starts, stops);
    require(starts.shape(0) == stops.shape(0), "There are not as many stops as starts.");
    nb::list strings;
    for (std::size_t i = 0; i < starts.shape(0); ++i) {
        const std::int64_t start = starts.data()[i], stop = stops.data()[i];
        require(0 <= start && start <= stop && stop <= static_cast<std::int64_t>(content.shape(0)),
                "A string lies outside of the content.");
        const auto* bytes = reinterpret_cast<const char*>(content.data());
        PyObject* text = PyUnicode_DecodeUTF8(bytes + start, stop - start, nullptr);
        if (text == nullptr) throw nb::python_error();
        strings.append(nb::steal(text));
    }
    return strings;
}

}  // namespace

NB_MODULE(_kernel, module) {
    using nb::arg;
    module.doc() = "The native search; see docs/kernel.md.";
    module.def("scan", &scan_codes, arg("codes").noconvert(), arg("tables").noconvert(), arg("starts").noconvert(),
               arg("stops").noconvert(), arg("k"), arg("allowed").noconvert().none(), arg("threads"),
               arg("gains").noconvert(), arg("first"), arg("depth"));
    module.def("tables", &tables_of, arg("codebooks").noconvert(), arg("queries").noconvert());
    module.def("additive_tables", &additive_tables_of, arg("codewords").noconvert(), arg("scales").noconvert(),
               arg("queries").noconvert());
    module.def("levels", &levels_of, arg("centroids").noconvert());
    module.def("best_lists", &lists_of, arg("centroids").noconvert(), arg("levels").noconvert(), arg("about").noconvert(),
               arg("queries").noconvert(), arg("count"));
    nb::class_<Assigner>(module, "Assigner")
        .def("__init__", &make_assigner, arg("centroids").noconvert(), arg("codebooks").noconvert())
        .def("nearest", &nearest_lists, arg("codes").noconvert(), arg("threads") = 1);
    module.def("highest", &highest_of, arg("values").noconvert(), arg("count"));
    module.def("lengthen", &lengthen_codes, arg("products").noconvert(), arg("between").noconvert(), arg("codes").noconvert(),
               arg("gained").noconvert(), arg("count"));
    module.def("strings", &strings_of, arg("content").noconvert(), arg("starts").noconvert(), arg("stops").noconvert());
    module.attr("WIDEST") = kWidest;
    module.attr("LEVEL_ROW") = kLevelRow;
    module.attr("BLOCK") = kBlock;
    module.def("use", &use, arg("name"));
    module.def("path", [] { return std::string(instructions().name); });
}

}  // namespace repconc
