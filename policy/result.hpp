// A value or the one line that says why there is none.
//
// Library code returns this instead of throwing or logging: the provider runs inside other
// people's processes, where neither is welcome.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace rdmaquota {

struct Error {
    std::string message;  // one line: what, where, what to do
};

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const noexcept { return state_.index() == 0; }
    T& value() noexcept { return *std::get_if<0>(&state_); }
    const T& value() const noexcept { return *std::get_if<0>(&state_); }
    T& operator*() noexcept { return value(); }
    const T& operator*() const noexcept { return value(); }
    T* operator->() noexcept { return &value(); }
    const T* operator->() const noexcept { return &value(); }
    const std::string& error() const noexcept { return std::get_if<1>(&state_)->message; }

private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)), failed_(true) {}

    explicit operator bool() const noexcept { return !failed_; }
    const std::string& error() const noexcept { return error_.message; }

private:
    Error error_;
    bool failed_ = false;
};

}  // namespace rdmaquota
