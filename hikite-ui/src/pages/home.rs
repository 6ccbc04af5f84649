//! The home page: status, savings, and items that need attention.

use askama::Template;
use serde::Deserialize;

use super::modules::{Module, Modules};
use crate::chart::{self, Bar};
use crate::number;
use crate::page::{Answer, OrTrouble, show as page};
use crate::seat::Seat;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    version: String,
    uptime_seconds: u64,
    sessions: u64,
    calls: Calls,
    saved: Saved,
    attention: Vec<Attention>,
}

/// Call statistics of one module, or of all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Calls {
    pub(crate) per_minute: f64,
    pub(crate) error_rate: f64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) total: u64,
}

impl Calls {
    pub(crate) fn rate(&self) -> String {
        format!("{:.1}", self.per_minute)
    }

    pub(crate) fn errors(&self) -> String {
        format!("{:.1} %", self.error_rate * 100.0)
    }

    pub(crate) fn spans(&self) -> String {
        let span = |ms: Option<f64>| {
            ms.map_or_else(
                || "–".to_owned(),
                |ms| if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") },
            )
        };
        format!("{} / {} ms", span(self.p50_ms), span(self.p99_ms))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Saved {
    today: Day,
    days: Vec<Day>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Day {
    #[serde(rename = "day")]
    date: String,
    calls: u64,
    errors: u64,
    tokens_saved: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attention {
    kind: String,
    name: String,
    message: String,
    hint: Option<String>,
}

impl Attention {
    /// Returns the page where the item can be resolved.
    fn place(&self) -> Option<String> {
        let name = crate::api::part(&self.name);
        Some(match &*self.kind {
            "module" | "login" => format!("/ui/modules/{name}"),
            "account" => "/ui/accounts".into(),
            "client" => "/ui/access".into(),
            "pin" => format!("/ui/pins/{name}"),
            "audit" => "/ui/audit".into(),
            _ => return None,
        })
    }
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    seat: &'a Seat,
    status: Option<Status>,
    modules: Vec<Module>,
    chart: String,
}

impl Home<'_> {
    fn uptime(&self) -> String {
        let seconds = self.status.as_ref().map_or(0, |status| status.uptime_seconds);
        match seconds {
            0..3_600 => self.seat.tn("{} min", seconds / 60),
            3_600..172_800 => self.seat.tn("{} h", seconds / 3600),
            _ => self.seat.tn("{} days", seconds / 86_400),
        }
    }
}

pub(crate) async fn show(seat: Seat) -> Answer {
    let status: Option<Status> = if seat.visitor.is_admin { seat.get("/v1/status").await.ok() } else { None };
    let modules: Modules = seat.get("/v1/modules").await.or_trouble(&seat)?;
    let chart = chart(&seat, status.as_ref());
    page(&Home { seat: &seat, status, modules: modules.modules, chart })
}

fn chart(seat: &Seat, status: Option<&Status>) -> String {
    let days = status.map(|status| &*status.saved.days).unwrap_or_default();
    if days.iter().all(|day| day.tokens_saved == 0) {
        return String::new();
    }
    let bars: Vec<Bar> = days
        .iter()
        .map(|day| Bar {
            label: day.date.get(5..).unwrap_or(&day.date).to_owned(),
            amount: day.tokens_saved,
            told: format!("{} · {} / {}", number::grouped(day.tokens_saved), day.calls, day.errors),
        })
        .collect();
    chart::bars(seat.t("Tokens saved per day"), &bars)
}
