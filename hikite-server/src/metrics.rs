//! The Prometheus endpoint `/metrics`, for admins and holders of the metrics token.

mod process;
mod text;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hikite_gateway::meter::{Metric, Point};
use hikite_gateway::share;
use http::header::CONTENT_TYPE;

use crate::app::App;

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    ([(CONTENT_TYPE, text::CONTENT_TYPE)], text::render(&app.reading())).into_response()
}

impl App {
    /// Collects all metrics of the server and the gateway.
    pub fn reading(&self) -> Vec<Metric> {
        let mut metrics = self.gateway.admin().status.metrics();
        let labels = vec![("version", env!("CARGO_PKG_VERSION").into())];
        metrics.extend([
            Metric::gauge(
                "hikite.build_info",
                "1",
                "Version of the running program.",
                vec![Point { labels, value: 1.0 }],
            ),
            Metric::gauge(
                "hikite.sessions",
                "{session}",
                "Open sessions.",
                Point::single(f64::from(self.open_sessions())),
            ),
            Metric::gauge("process.uptime", "s", "Uptime.", Point::single(self.started.elapsed().as_secs_f64())),
        ]);
        let nodes = self.peers().map_or(1, |peers| peers.nodes.count());
        metrics.push(Metric::gauge(
            "hikite.nodes",
            "{node}",
            "Processes on this store that this one knows, including itself.",
            Point::single(f64::from(u32::try_from(nodes).unwrap_or(u32::MAX))),
        ));
        metrics.extend(share::metrics(&self.usages()));
        metrics.extend(process::reading());
        metrics
    }
}
