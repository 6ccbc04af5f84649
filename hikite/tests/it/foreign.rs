//! A client that others wrote: the Rust SDK of the protocol. Ours is not the only witness.

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientInfo, CreateElicitationRequestParams, CreateElicitationResult,
    ElicitationAction,
};
use rmcp::service::{RequestContext, RoleClient};
use rmcp::{ClientHandler, ServiceExt};
