//! The Prometheus text format 0.0.4. Names follow OpenTelemetry's rules: dots become underscores; the unit and `total`
//! are appended.

use std::fmt::Write;

use hikite_gateway::meter::{BOUNDS, DurationCounts, Labels, Metric, MetricData};

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn render(metrics: &[Metric]) -> String {
    let mut out = String::with_capacity(16 * 1024);
    for metric in metrics {
        let (name, kind) = (name(metric), kind(&metric.data));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", escaped(metric.help, false));
        match &metric.data {
            MetricData::Counter(points) | MetricData::Gauge(points) => {
                for point in points {
                    let _ = writeln!(out, "{name}{} {}", labels(&point.labels, None), point.value);
                }
            }
            MetricData::Histogram(series) => {
                for (labels, durations) in series {
                    histogram(&mut out, &name, labels, durations);
                }
            }
        }
    }
    out
}

fn histogram(out: &mut String, name: &str, of: &Labels, durations: &DurationCounts) {
    let mut below = 0;
    let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(durations.counts) {
        below += count;
        let _ = writeln!(out, "{name}_bucket{} {below}", labels(of, Some(&bound)));
    }
    let plain = labels(of, None);
    let _ = writeln!(out, "{name}_sum{plain} {}\n{name}_count{plain} {below}", durations.sum.as_secs_f64());
}

fn kind(data: &MetricData) -> &'static str {
    match data {
        MetricData::Counter(_) => "counter",
        MetricData::Gauge(_) => "gauge",
        MetricData::Histogram(_) => "histogram",
    }
}

/// Metrics with another name in Prometheus, whose rules reserve `_count` for histograms.
const PROMETHEUS_NAMES: [(&str, &str); 1] = [("process.unix.file_descriptor.count", "process_open_fds")];

fn name(metric: &Metric) -> String {
    if let Some((_, name)) = PROMETHEUS_NAMES.iter().find(|(known, _)| *known == metric.name) {
        return (*name).to_owned();
    }
    let unit = match metric.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let total = if matches!(metric.data, MetricData::Counter(_)) { "_total" } else { "" };
    format!("{}{unit}{total}", metric.name.replace('.', "_"))
}

fn labels(labels: &Labels, bound: Option<&str>) -> String {
    let own = labels.iter().map(|(name, value)| format!("{}=\"{}\"", name.replace('.', "_"), escaped(value, true)));
    let all: Vec<String> = own.chain(bound.map(|bound| format!("le=\"{bound}\""))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

fn escaped(text: &str, quoted: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quoted { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hikite_gateway::meter::Point;

    use super::*;

    #[test]
    fn names_units_labels_and_buckets_are_those_of_the_format() {
        let nasty = vec![("module", "a\"b\\c\nd".into())];
        let mut counts = [0; BOUNDS.len() + 1];
        (counts[0], counts[BOUNDS.len()]) = (2, 1);
        let durations = DurationCounts { counts, sum: Duration::from_millis(1500) };
        let text = render(&[
            Metric::counter("hikite.retries", "{attempt}", "Once\nmore \\.", vec![Point { labels: nasty, value: 3.0 }]),
            Metric {
                name: "mcp.client.operation.duration",
                unit: "s",
                help: "h",
                data: MetricData::Histogram(vec![(vec![("mcp.method.name", "ping".into())], durations)]),
            },
        ]);
        assert!(text.starts_with(
            "# HELP hikite_retries_total Once\\nmore \\\\.\n# TYPE hikite_retries_total counter\n\
             hikite_retries_total{module=\"a\\\"b\\\\c\\nd\"} 3\n"
        ));
        for line in [
            "# TYPE mcp_client_operation_duration_seconds histogram",
            "mcp_client_operation_duration_seconds_bucket{mcp_method_name=\"ping\",le=\"0.01\"} 2",
            "mcp_client_operation_duration_seconds_bucket{mcp_method_name=\"ping\",le=\"1\"} 2",
            "mcp_client_operation_duration_seconds_bucket{mcp_method_name=\"ping\",le=\"+Inf\"} 3",
            "mcp_client_operation_duration_seconds_sum{mcp_method_name=\"ping\"} 1.5",
            "mcp_client_operation_duration_seconds_count{mcp_method_name=\"ping\"} 3",
        ] {
            assert!(text.lines().any(|given| given == line), "{line}\n{text}");
        }
    }
}
