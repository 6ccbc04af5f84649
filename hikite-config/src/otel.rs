//! Reads the standard OpenTelemetry environment variables. An invalid value is only a warning, because they are often
//! set for all programs of a machine.

use std::time::Duration;

use hikite_core::secret::Secret;
use hikite_core::uri::decode_percent;
use hikite_gateway::trace::Sampler;

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::secret::join;
use super::transport::header_fault;
use super::url;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Export of traces and metrics over OTLP.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpSection {
    pub traces: Option<Secret>,
    pub metrics: Option<Secret>,
    pub headers: Vec<(String, Secret)>,
    pub service: String,
    pub attributes: Vec<(String, String)>,
    pub sampler: Sampler,
    pub interval: Duration,
    pub timeout: Duration,
}

const SERVICE: &str = "hikite";
const INTERVAL: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns `true` if `OTEL_SDK_DISABLED` is `true`.
pub(crate) fn is_disabled(env: &dyn Fn(&str) -> Option<String>) -> bool {
    env("OTEL_SDK_DISABLED").is_some_and(|word| word.trim().eq_ignore_ascii_case("true"))
}

/// Reads the settings of the environment alone.
pub(crate) fn read(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>) -> OtlpSection {
    let mut read = OtelReader { check, path };
    let base = read.address(ENDPOINT);
    let mut attributes = read.pairs("OTEL_RESOURCE_ATTRIBUTES");
    let named = attributes.iter().position(|(name, _)| name == "service.name");
    let named = named.map(|at| attributes.remove(at).1);
    let service = read.get("OTEL_SERVICE_NAME").or(named).unwrap_or_else(|| SERVICE.into());
    let otlp = OtlpSection {
        traces: read.signal("TRACES", "v1/traces", base.as_ref()),
        metrics: read.signal("METRICS", "v1/metrics", base.as_ref()),
        headers: read.headers(),
        service,
        attributes,
        sampler: read.sampler(),
        interval: read.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", INTERVAL),
        timeout: read.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", TIMEOUT),
    };
    let protocol = read.get("OTEL_EXPORTER_OTLP_PROTOCOL");
    if (otlp.traces.is_some() || otlp.metrics.is_some()) && protocol.is_some_and(|word| word != "http/protobuf") {
        read.warn("OTEL_EXPORTER_OTLP_PROTOCOL", "only `http/protobuf` is supported and is used instead");
    }
    otlp
}

struct OtelReader<'c, 'a, 'r> {
    check: &'c mut ConfigChecker<'a, 'r>,
    path: &'c ConfigPath<'c>,
}

impl OtelReader<'_, '_, '_> {
    /// Returns a variable; an empty one counts as unset.
    fn get(&self, name: &str) -> Option<String> {
        (self.check.environment.env)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn warn(&mut self, name: &str, what: &str) {
        self.check.report.warning(self.path, format!("the variable `{name}`: {what}"));
    }

    fn address(&mut self, name: &str) -> Option<Secret> {
        let text = self.get(name)?;
        match url::fault(&text) {
            Some((fault, _)) => {
                self.warn(name, &format!("it {fault}"));
                None
            }
            None => Some(Secret::hidden(text)),
        }
    }

    /// Returns the endpoint of one signal: its own, used unchanged, or else a path below the common one.
    fn signal(&mut self, signal: &str, path: &str, base: Option<&Secret>) -> Option<Secret> {
        let exporter = self.get(&format!("OTEL_{signal}_EXPORTER"));
        if exporter.is_some_and(|word| word == "none") {
            return None;
        }
        let own = self.address(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
        own.or_else(|| base.map(|base| join(base, path)))
    }

    fn headers(&mut self) -> Vec<(String, Secret)> {
        let name = "OTEL_EXPORTER_OTLP_HEADERS";
        let (good, bad): (Vec<_>, Vec<_>) =
            self.pairs(name).into_iter().partition(|(name, value)| header_fault(name, value).is_none());
        if !bad.is_empty() {
            self.warn(name, "it contains something that is not a header");
        }
        good.into_iter().map(|(name, value)| (name, Secret::hidden(value))).collect()
    }

    /// Parses `name=value,name=value` with percent-encoded values.
    fn pairs(&mut self, name: &str) -> Vec<(String, String)> {
        let text = self.get(name).unwrap_or_default();
        let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        let pair = |part: &&str| {
            let (name, value) = part.split_once('=')?;
            Some((name.trim().to_owned(), decode_percent(value.trim())?))
        };
        let pairs: Vec<(String, String)> = parts.iter().filter_map(pair).collect();
        if pairs.len() < parts.len() {
            self.warn(name, "it must have the form `name=value,name=value`");
        }
        pairs
    }

    fn milliseconds(&mut self, name: &str, default: Duration) -> Duration {
        let Some(text) = self.get(name) else { return default };
        match text.parse().ok().filter(|ms| *ms >= 10) {
            Some(ms) => Duration::from_millis(ms),
            None => {
                self.warn(name, "it is not a number of milliseconds");
                default
            }
        }
    }

    fn sampler(&mut self) -> Sampler {
        let name = "OTEL_TRACES_SAMPLER";
        let word = self.get(name).unwrap_or_default();
        let (parent_based, kind) = match word.strip_prefix("parentbased_") {
            Some(kind) => (true, kind),
            None => (word.is_empty(), word.as_str()),
        };
        let ratio = match kind {
            "" | "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.ratio(),
            _ => {
                self.warn(name, "it names an unknown sampler");
                return Sampler { ratio: 1.0, parent_based: true };
            }
        };
        Sampler { ratio, parent_based }
    }

    fn ratio(&mut self) -> f64 {
        let name = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = self.get(name) else { return 1.0 };
        let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        ratio.unwrap_or_else(|| {
            self.warn(name, "it is not a number from 0 to 1");
            1.0
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path as FilePath;

    use super::*;
    use crate::{Config, ConfigEnvironment, Problems, show};

    fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, Problems> {
        let env = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let read = |_: &FilePath| Ok("from-a-file\n".to_owned());
        Config::parse(text, FilePath::new("x"), ConfigEnvironment { env: &env, read: &read })
    }

    fn otlp(text: &str, variables: &[(&str, &str)]) -> Option<OtlpSection> {
        load(text, variables).expect("a good config").telemetry.otlp
    }

    fn exposed(url: Option<&Secret>) -> Option<&str> {
        url.map(Secret::expose)
    }

    #[test]
    fn nothing_is_sent_unless_somebody_says_where() {
        assert_eq!(otlp("{}", &[]), None);
        assert_eq!(otlp(r#"{"telemetry":{"otlp":{"interval":"5s"}}}"#, &[("OTEL_SERVICE_NAME", "x")]), None);
        let file = r#"{"telemetry":{"otlp":{"endpoint":"http://c:4318/x/"}}}"#;
        assert_eq!(otlp(file, &[("OTEL_SDK_DISABLED", "TRUE")]), None);
        let otlp_settings = otlp(file, &[]).expect("an endpoint");
        assert_eq!(exposed(otlp_settings.traces.as_ref()), Some("http://c:4318/x/v1/traces"));
        assert_eq!(exposed(otlp_settings.metrics.as_ref()), Some("http://c:4318/x/v1/metrics"));
        assert_eq!(
            (otlp_settings.service.as_str(), otlp_settings.interval, otlp_settings.timeout),
            ("hikite", INTERVAL, TIMEOUT)
        );
        assert_eq!(otlp_settings.sampler, Sampler { ratio: 1.0, parent_based: true });
    }

    #[test]
    fn headers_of_the_environment_do_not_go_where_the_file_says() {
        let variables =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", "https://e"), ("OTEL_EXPORTER_OTLP_HEADERS", "key=a%2Cb, x = y")];
        let otlp_settings = otlp("{}", &variables).expect("an endpoint");
        let pairs: Vec<(&str, &str)> =
            otlp_settings.headers.iter().map(|(name, value)| (&**name, value.expose())).collect();
        assert_eq!(pairs, [("key", "a,b"), ("x", "y")]);
        let file = r#"{"telemetry":{"otlp":{"endpoint":"http://c","headers":{"own":{"file":"f"}}}}}"#;
        let config = load(file, &variables).expect("good");
        let otlp_settings = config.telemetry.otlp.as_ref().expect("an endpoint");
        assert_eq!((otlp_settings.headers.len(), otlp_settings.headers[0].1.expose()), (1, "from-a-file"));
        let shown = show(&config).to_string();
        assert!(!shown.contains("from-a-file") && !shown.contains("a,b"), "{shown}");
    }

    #[test]
    fn each_kind_may_have_an_address_of_its_own_or_none() {
        let otlp_settings = otlp(
            "{}",
            &[
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/custom"),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
                ("OTEL_METRICS_EXPORTER", "none"),
                ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=named,a=b"),
            ],
        );
        let otlp_settings = otlp_settings.expect("an endpoint");
        assert_eq!((exposed(otlp_settings.traces.as_ref()), otlp_settings.metrics), (Some("http://t/custom"), None));
        assert_eq!(otlp_settings.sampler, Sampler { ratio: 0.25, parent_based: true });
        assert_eq!((otlp_settings.service.as_str(), otlp_settings.attributes.len()), ("named", 1));
    }

    #[test]
    fn a_wrong_variable_is_a_warning_and_a_wrong_key_an_error() {
        for (name, value) in [
            (ENDPOINT, "collector:4317"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "nonsense"),
            ("OTEL_TRACES_SAMPLER", "mostly"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=%zz"),
        ] {
            let config = load("{}", &[(name, value)]).expect(name);
            assert!(config.warnings.iter().any(|warning| warning.contains(name)), "{name}: {:?}", config.warnings);
            assert!(!config.warnings.iter().any(|warning| warning.contains(value)), "{name}");
        }
        for wrong in [
            r#"{"endpoint":"collector:4317"}"#,
            r#"{"endpoint":"http://c","sample":2}"#,
            r#"{"endpoint":"http://c","interval":"0s"}"#,
            r#"{"endpoint":"http://c","headers":{"a b":"x"}}"#,
            r#"{"end_point":"http://c"}"#,
        ] {
            assert!(load(&format!(r#"{{"telemetry":{{"otlp":{wrong}}}}}"#), &[]).is_err(), "{wrong}");
        }
        assert!(load(r#"{"telemetry":{"metrics":{"token":"a","tokenFile":"f"}}}"#, &[]).is_err());
        assert!(load(r#"{"telemetry":{"log":{"level":"a=b=c"}}}"#, &[]).is_err());
    }
}
