// Deliveries and reports on the control socket, as rdmaquotad(8) describes its request "cluster".
#pragma once

#include "tools/common/cluster/ceilings.hpp"
#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota {

Json delivery_json(const Delivery& delivery);
Result<Delivery> parse_delivery(const Json& json);
Json report_json(const NodeReport& report);
Result<NodeReport> parse_report(const Json& json);

}  // namespace rdmaquota
