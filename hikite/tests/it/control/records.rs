//! Audit endpoints: a live tail, one record, and exports.

use serde_json::{Value, json};

use super::refuses_outsiders;
use crate::gateway;
use crate::rest::{get, post};

#[tokio::test]
async fn records_are_followed_looked_at_and_taken_home() {
    let gateway = gateway(json!({})).await;
    let bomb = "=HYPERLINK(\"http://x\")";
    for name in ["+x", bomb, "plain"] {
        post(&gateway, "/v1/tools/call", &json!({ "name": name })).await;
    }
    let page = get(&gateway, "/v1/audit?kind=call&limit=2").await.value();
    let seqs = |page: &Value| -> Vec<u64> {
        page["records"].as_array().expect("records").iter().filter_map(|record| record["seq"].as_u64()).collect()
    };
    assert_eq!(seqs(&page), [3, 2]);
    let tail = get(&gateway, "/v1/audit?kind=call&after=1").await.value();
    assert_eq!((seqs(&tail), tail["next"].is_null()), (vec![2, 3], true));
    assert_eq!(seqs(&get(&gateway, "/v1/audit?after=3").await.value()), [0_u64; 0]);
    assert_eq!(get(&gateway, "/v1/audit?after=1&before=3").await.status, 400);
    let one = get(&gateway, "/v1/audit/2").await.value();
    assert_eq!((&one["seq"], &one["what"]), (&json!(2), &json!(bomb)));
    for missing in ["9", "0", "x", "-1", "99999999999999999999"] {
        assert_eq!(get(&gateway, &format!("/v1/audit/{missing}")).await.status, 404, "{missing}");
    }
    let lines = get(&gateway, "/v1/audit/export?kind=call").await;
    assert_eq!(lines.headers["content-type"], "application/x-ndjson");
    let lines: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((lines.len(), &lines[0]["seq"]), (3, &json!(1)));
    assert!(lines.iter().all(|line| line["hash"].is_string()));
    let table = get(&gateway, "/v1/audit/export?format=csv&kind=call").await;
    assert_eq!(table.headers["content-type"], "text/csv; charset=utf-8");
    let rows: Vec<&str> = table.text().lines().collect();
    assert!(rows.len() == 4 && rows[0].starts_with("seq,at,kind,"), "{rows:?}");
    for row in &rows[1..] {
        assert!(!row.contains(",=") && !row.contains(",+") && !row.contains(",\"="), "{row}");
    }
    assert!(rows[2].contains("\"'=HYPERLINK("), "{}", rows[2]);
    assert_eq!(get(&gateway, "/v1/audit/export?format=xml").await.status, 400);
    refuses_outsiders(&gateway, &[("GET", "/v1/audit/1"), ("GET", "/v1/audit/export")]).await;
}
