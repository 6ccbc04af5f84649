//! Request and result of `initialize`, for the revisions with sessions.

use hikite_core::caller::ClientCapabilities;
use hikite_core::json::{Object, Raw};

use crate::revision::Revision;

/// Parameters of `initialize`: the client's revision, capabilities and `clientInfo`.
#[derive(Debug)]
pub struct InitializeRequest {
    pub revision: Revision,
    pub client_capabilities: ClientCapabilities,
    pub client: Object,
}

/// Most bytes of `clientInfo` and capabilities together: they are kept as long as the session, and a client may have
/// many sessions.
pub const CLIENT_BYTES: usize = 8 * 1024;

impl InitializeRequest {
    /// Checks that the parameters are present and not too large.
    pub fn checked(request: Option<Self>) -> Result<Self, &'static str> {
        let request = request.ok_or("`initialize` needs `protocolVersion` and `capabilities`")?;
        if request.client_capabilities.bytes() + request.client.raw().bytes().len() > CLIENT_BYTES {
            return Err("`clientInfo` and `capabilities` are larger than 8 KiB together");
        }
        Ok(request)
    }

    pub fn read(params: Option<&Raw>) -> Option<Self> {
        let params = params?.object()?;
        let capabilities = params.get("capabilities").and_then(Raw::object).unwrap_or_default();
        Some(Self {
            revision: Revision::negotiate(&params.text("protocolVersion")?),
            client_capabilities: ClientCapabilities::read(&capabilities),
            client: params.get("clientInfo").and_then(Raw::object).unwrap_or_default(),
        })
    }

    /// Returns the parameters of our own `initialize`, as a client.
    pub fn params(&self) -> Object {
        Object::default()
            .with("protocolVersion", self.revision.name())
            .with("capabilities", self.client_capabilities.capabilities())
            .with("clientInfo", self.client.clone())
    }
}

/// Result of `initialize`.
#[derive(Debug, Default)]
pub struct InitializeResult {
    pub protocol_version: String,
    pub capabilities: Object,
    pub info: Object,
    pub instructions: Option<String>,
}

impl InitializeResult {
    pub fn read(result: &Raw) -> Option<Self> {
        let result = result.object()?;
        Some(Self {
            protocol_version: result.text("protocolVersion")?,
            capabilities: result.get("capabilities").and_then(Raw::object).unwrap_or_default(),
            info: result.get("serverInfo").and_then(Raw::object).unwrap_or_default(),
            instructions: result.text("instructions"),
        })
    }

    pub fn result(&self) -> Raw {
        let mut result = Object::default()
            .with("protocolVersion", self.protocol_version.as_str())
            .with("capabilities", self.capabilities.clone())
            .with("serverInfo", self.info.clone());
        if let Some(instructions) = &self.instructions {
            result.set("instructions", instructions.as_str());
        }
        result.raw()
    }
}

/// The icon as a data URL: the pull that hikite is named after.
const ICON: &str = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAxNiAxNiI+PHJlY3Qgd2lkdGg9IjE2IiBoZWlnaHQ9IjE2IiByeD0iMyIvPjxwYXRoIHN0cm9rZT0iI2ZmZiIgc3Ryb2tlLXdpZHRoPSIyIiBkPSJNNSA5aDYiLz48L3N2Zz4=";

/// Returns hikite's `serverInfo` with the icon. Sent in `initialize` only, because the icon is longer than most
/// responses.
pub fn server_info() -> Object {
    let icon = Object::default().with("src", ICON).with("mimeType", "image/svg+xml");
    own_info().with("icons", Raw::array(&[icon.raw()]))
}

/// Returns hikite's own name and version.
pub fn own_info() -> Object {
    Object::default().with("name", "hikite").with("title", "hikite").with("version", env!("CARGO_PKG_VERSION"))
}
