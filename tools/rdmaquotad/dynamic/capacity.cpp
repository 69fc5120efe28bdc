#include "tools/rdmaquotad/dynamic/capacity.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "tools/common/device_query.hpp"
#include "policy/node_memory.hpp"
#include "tools/rdmaquotad/loop/question.hpp"

namespace rdmaquota {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds first_wait{1000};  // the daemon waits for an answer once
constexpr std::chrono::seconds patience{20};           // for a device that does not answer
constexpr std::chrono::seconds ask_again{10};          // one that did not, or could not be asked

// The inode of the device's directory in sysfs; 0 where there is none. A device that is registered again has another one.
ino_t device_node(const std::string& device) {
    struct stat status {};
    return ::stat(("/sys/class/infiniband/" + device).c_str(), &status) == 0 ? status.st_ino : 0;
}

// What one device tells. All 0 as long as it has not.
class AskedDevice {
public:
    AskedDevice(const std::string& device, std::chrono::milliseconds wait) : device_(device) {
        ask_now();
        look(wait);
    }
    const DeviceMaxima& of() {
        if (const auto node = device_node(device_); node != node_ && node != 0) {  // another device of this name
            node_ = node;
            ask_now();
        }
        if (question_) look(std::chrono::milliseconds(0));
        else if (!known_ && Clock::now() - asked_ > ask_again) ask_now();
        return maxima_;
    }

private:
    void ask_now() {
        asked_ = Clock::now();
        question_.emplace([this] { return query_device(device_); });
    }
    // Loading libibverbs and its providers takes seconds on a busy machine.
    void look(std::chrono::milliseconds wait) {
        const auto answer = question_->answer(wait);
        if (!answer && Clock::now() - asked_ < patience) return;
        question_.reset();
        maxima_ = parse_maxima(answer.value_or(""));
        known_ = maxima_ != DeviceMaxima{};
    }

    std::string device_;
    ino_t node_ = device_node(device_);
    DeviceMaxima maxima_{};
    bool known_ = false;
    Clock::time_point asked_;
    std::optional<Question> question_;
};

std::uint64_t device_maximum(const std::string& device, Resource resource, std::chrono::milliseconds wait) {
    static std::map<std::string, AskedDevice> devices;
    return devices.try_emplace(device, device, wait).first->second.of()[index(resource)];
}

}  // namespace

std::uint64_t capacity(CapacityOf of, const std::string& device, Resource resource) {
    if (of == CapacityOf::node) return node_memory();
    return of == CapacityOf::device ? device_maximum(device, resource, first_wait) : 0;
}

std::uint64_t told_by_device(const std::string& device, Resource resource) {
    return device_maximum(device, resource, std::chrono::milliseconds(0));
}

}  // namespace rdmaquota
