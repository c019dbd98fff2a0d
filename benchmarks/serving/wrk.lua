-- The wrk script of benchmarks/serve.py: wrk ... -s wrk.lua URL BODIES.json
-- Sends the bodies of the file in turn, and prints one JSON line as client.py does.

local requests, at = {}, 0

function init(arguments)
  local text = assert(io.open(arguments[1])):read("*a")
  -- a JSON list of flat objects, each of which ends with its list of inputs
  for body in text:gmatch('{.-%]}') do
    requests[#requests + 1] = wrk.format("POST", nil, { ["Content-Type"] = "application/json" }, body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  local refused = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('{"answers": %d, "answers_per_second": %f, "refused": %d, "p50": %f, "p95": %f, "p99": %f}\n',
    summary.requests, summary.requests / (summary.duration / 1e6), refused,
    latency:percentile(50) / 1000, latency:percentile(95) / 1000, latency:percentile(99) / 1000))
end
