// GET /metrics, for Prometheus.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "tools/rdmaquotad/serve/http_server.hpp"

namespace rdmaquota {

class MetricsPage {
public:
    explicit MetricsPage(std::function<std::string()> text) : text_(std::move(text)) {}

    // The figures are not older than a second.
    HttpReply answer(const HttpRequest& request);

private:
    std::function<std::string()> text_;
    Text made_;
    std::chrono::steady_clock::time_point made_at_;
};

}  // namespace rdmaquota
