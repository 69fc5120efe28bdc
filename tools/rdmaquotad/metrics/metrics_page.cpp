#include "tools/rdmaquotad/metrics/metrics_page.hpp"

#include <memory>

namespace rdmaquota {

HttpReply MetricsPage::answer(const HttpRequest& request) {
    if (request.path != "/metrics")
        return {404, "text/plain", std::make_shared<const std::string>("the figures are at /metrics\n")};
    const auto now = std::chrono::steady_clock::now();
    if (!made_ || now - made_at_ > std::chrono::seconds(1)) {
        made_ = std::make_shared<const std::string>(text_());
        made_at_ = now;
    }
    return {200, "text/plain; version=0.0.4; charset=utf-8", made_};
}

}  // namespace rdmaquota
