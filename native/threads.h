// The groups of a call, spread over threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "group.h"

namespace {

// A group of n words costs about n^3 steps of 5 ns; a thread must have this many to be worth its start.
constexpr double steps_per_thread = 20000;

// Groups that several threads take one after the other.
template <class Work> struct Queue {
    const Work *work;  // of the caller, who waits until nothing is left
    const int *const stop;
    const int64_t count;
    std::atomic<int64_t> next{0}, left{count};
    std::atomic<int> status{0};
    std::mutex lock;
    std::condition_variable done;

    Queue(const Work &todo, int64_t groups, const int *stop_flag)
        : work(&todo), stop(stop_flag), count(groups) {}

    void run() {
        FlushDenormals flush;
        for (int64_t index; (index = next++) < count;) {
            if (!given_up(stop)) status |= (*work)(index);
            if (--left == 0) {
                const std::lock_guard<std::mutex> hold(lock);
                done.notify_one();
            }
        }
    }
    void wait() {
        std::unique_lock<std::mutex> hold(lock);
        done.wait(hold, [this] { return left == 0; });
    }
};

// Run `work(group)` for every group, on several threads if asked. Groups are independent, so the number
// of threads changes no bit of the result. Threads live for one call, and one that a busy machine starts
// too late is not waited for: OpenMP's spin while they wait, which costs a multiple of the time there,
// and do not survive a fork.
template <class Work>
int for_each(int64_t count, double worth, int64_t threads, const int *stop, const Work &work) {
    const auto queue = std::make_shared<Queue<Work>>(work, count, stop);
    for (int64_t team = 1; team < threads && team < count && double(team) < worth; ++team) {
        try {
            std::thread([queue] { queue->run(); }).detach();
        } catch (const std::system_error &) {
            break;  // no more threads to be had
        }
    }
    queue->run();
    if (count > 0) queue->wait();
    return queue->status;
}

template <class T, class Work>
int for_each_group(const Groups<T> &groups, int64_t threads, const int *stop, const Work &work) {
    if (groups.status()) return groups.status();
    const double n = double(groups.length(0, 0)), count = double(groups.count());
    return for_each(groups.count(), count * n * n * n / steps_per_thread, threads, stop, work);
}

}  // namespace
