// The same work on several threads; the calling one is number 0.

#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace repconc {

constexpr std::size_t kMostThreads = 256;

// What a thread throws is thrown here, once all have ended.
template <typename Work>
void on_threads(std::size_t threads, const Work& work) {
    std::exception_ptr thrown;
    std::mutex lock;
    const auto guarded = [&](std::size_t thread) {
        try {
            work(thread);
        } catch (...) {
            const std::lock_guard hold(lock);
            thrown = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t thread = 1; thread < std::min(threads, kMostThreads); ++thread) others.emplace_back(guarded, thread);
        guarded(0);
    }
    if (thrown) std::rethrow_exception(thrown);
}

}  // namespace repconc
