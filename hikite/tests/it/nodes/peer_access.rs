//! The peer endpoints of nodes are closed to everybody else.

use serde_json::json;

use super::*;

#[tokio::test]
async fn a_token_does_not_open_what_is_for_nodes() {
    let cluster = Cluster::start(2, json!({})).await;
    let session = cluster.client(0).await.session();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    for path in ["/node/mcp", "/node/mcp/work", "/node/messages?sessionId=x"] {
        let bare = HttpRequest::new("POST", path).json(list.clone()).header("mcp-session-id", &session);
        let bearer = format!("Bearer {TOKEN}");
        for request in [
            bare.clone(),
            bare.clone().header("authorization", &bearer),
            bare.clone().header("hikite-pass", TOKEN),
            bare.clone().header("hikite-pass", &session).header("authorization", &bearer),
        ] {
            let reply = request.send(cluster.address(0)).await;
            assert_eq!(reply.status, 403, "{path}: {}", reply.text());
        }
    }
    cluster.nodes[0].wait_for_stderr("rejected a request that claims to come from another node").await;
}

#[tokio::test]
async fn a_node_that_is_alone_has_no_such_address() {
    let gateway = crate::gateway(json!({})).await;
    for path in ["/node/mcp", "/node/mcp/work", "/node/messages"] {
        assert_eq!(gateway.send(gateway.request("POST", path)).await.status, 404, "{path}");
        assert_eq!(gateway.send(HttpRequest::new("POST", path)).await.status, 401, "{path}");
    }
    assert_eq!(HttpRequest::new("GET", "/readyz").send(gateway.address()).await.status, 200);
}
