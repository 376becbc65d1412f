// Which instruction set runs.

#include "instructions.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace repconc {
namespace {

// What this machine can run, the best first.
std::vector<const Instructions*> possible() {
    std::vector<const Instructions*> sets;
#if defined(__x86_64__)
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
    if (avx512 && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni")) sets.push_back(&kAvx512Vbmi);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        sets.push_back(&kAvx2);
#elif defined(__aarch64__)
    sets.push_back(&kNeon);
#endif
    sets.push_back(&kPortable);
    return sets;
}

// By name, or the best where none is given.
const Instructions* find(const std::string& wanted) {
    for (const Instructions* set : possible())
        if (wanted.empty() || wanted == set->name) return set;
    throw std::runtime_error("REPCONC_KERNEL asks for '" + wanted + "', which this machine or build does not have.");
}

const Instructions*& current() {
    static const Instructions* set = [] {
        const char* forced = std::getenv("REPCONC_KERNEL");
        return find(forced ? forced : "");
    }();
    return set;
}

}  // namespace

const Instructions& instructions() { return *current(); }

void use(const std::string& name) { current() = find(name); }

}  // namespace repconc
