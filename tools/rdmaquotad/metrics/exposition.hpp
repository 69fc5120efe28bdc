// Prometheus' text format, version 0.0.4: families of samples, each with its help and type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace rdmaquota {

class Exposition {
public:
    // Values may have any bytes; what cannot be printed is escaped. Names are those of the format.
    using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

    // All samples of a family follow its beginning. One without any is not written.
    void gauge(std::string_view name, std::string_view help) { begin(name, "gauge", help); }
    void counter(std::string_view name, std::string_view help) { begin(name, "counter", help); }  // the name ends in _total
    void sample(Labels labels, std::uint64_t value);
    void sample_seconds(Labels labels, std::uint64_t ms);

    const std::string& text() const noexcept { return text_; }

private:
    void begin(std::string_view name, std::string_view type, std::string_view help);
    void write(Labels labels, const std::string& value);

    std::string text_, head_, name_;
};

}  // namespace rdmaquota
