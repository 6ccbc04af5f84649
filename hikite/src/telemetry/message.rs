//! Parts shared by all OTLP messages: the resource and attributes.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use hikite_config::OtlpSection;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1;

/// The OTLP resource that describes this process.
#[derive(Clone, Debug)]
pub(crate) struct OtlpResource(v1::Resource);

impl OtlpResource {
    pub(crate) fn new(otlp: &OtlpSection) -> Result<Self> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|_| anyhow!("the operating system returned no random bytes"))?;
        let own = [
            ("service.name", otlp.service.clone()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", format!("{:032x}", u128::from_be_bytes(random))),
        ];
        let named = |name: &str| otlp.attributes.iter().any(|(known, _)| known == name);
        let own = own.into_iter().filter(|(name, _)| !named(name)).map(|(name, value)| text(name, value));
        let configured = otlp.attributes.iter().map(|(name, value)| text(name, value.clone()));
        Ok(Self(v1::Resource { attributes: own.chain(configured).collect(), ..v1::Resource::default() }))
    }

    pub(crate) fn message(&self) -> v1::Resource {
        self.0.clone()
    }
}

pub(crate) fn scope() -> InstrumentationScope {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    InstrumentationScope { name: "hikite".to_owned(), version, ..InstrumentationScope::default() }
}

pub(crate) fn text(name: &str, value: String) -> KeyValue {
    pair(name, Value::StringValue(value))
}

pub(crate) fn pair(name: &str, value: Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

pub(crate) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
