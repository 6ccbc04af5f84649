//! Encodes metrics as OTLP messages, cumulative since start-up.

use std::time::SystemTime;

use hikite_gateway::meter::{BOUNDS, DurationCounts, Labels, Metric, MetricData, Point};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data as OtlpData;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric as Message, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};

use super::message::{OtlpResource, nanos, scope, text};

/// Time range of a measurement, in nanoseconds.
#[derive(Clone, Copy)]
struct MetricInterval {
    begin: u64,
    end: u64,
}

pub(crate) fn request(
    resource: &OtlpResource,
    metrics: &[Metric],
    begin: SystemTime,
    end: SystemTime,
) -> ExportMetricsServiceRequest {
    let span = MetricInterval { begin: nanos(begin), end: nanos(end) };
    let scope_metrics = ScopeMetrics {
        scope: Some(scope()),
        metrics: metrics.iter().map(|metric| message(metric, span)).collect(),
        ..ScopeMetrics::default()
    };
    let resource_metrics = ResourceMetrics {
        resource: Some(resource.message()),
        scope_metrics: vec![scope_metrics],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }
}

fn message(metric: &Metric, span: MetricInterval) -> Message {
    let cumulative = AggregationTemporality::Cumulative.into();
    let points = |points: &[Point]| points.iter().map(|point| number(point, span)).collect();
    let data = match &metric.data {
        MetricData::Counter(all) => {
            OtlpData::Sum(Sum { data_points: points(all), aggregation_temporality: cumulative, is_monotonic: true })
        }
        MetricData::Gauge(all) => OtlpData::Gauge(Gauge { data_points: points(all) }),
        MetricData::Histogram(series) => OtlpData::Histogram(Histogram {
            data_points: series.iter().map(|(labels, durations)| histogram(labels, durations, span)).collect(),
            aggregation_temporality: cumulative,
        }),
    };
    Message {
        name: metric.name.to_owned(),
        description: metric.help.to_owned(),
        unit: metric.unit.to_owned(),
        data: Some(data),
        ..Message::default()
    }
}

fn number(point: &Point, span: MetricInterval) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(&point.labels),
        start_time_unix_nano: span.begin,
        time_unix_nano: span.end,
        value: Some(Value::AsDouble(point.value)),
        ..NumberDataPoint::default()
    }
}

fn histogram(labels: &Labels, durations: &DurationCounts, span: MetricInterval) -> HistogramDataPoint {
    HistogramDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: span.begin,
        time_unix_nano: span.end,
        count: durations.count(),
        sum: Some(durations.sum.as_secs_f64()),
        bucket_counts: durations.counts.to_vec(),
        explicit_bounds: BOUNDS.to_vec(),
        ..HistogramDataPoint::default()
    }
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| text(name, value.clone().into_owned())).collect()
}
