//! The rows of retrieval.md section 3.

use crate::support::{post, router, send, service_of, token};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

fn path() -> String {
    format!("/mcp/{}", token("alpha", 3))
}

fn rpc(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn ping() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string()
}

#[tokio::test]
async fn a_request_is_answered_by_one_event_without_initialize() {
    let answer = send(&router(), post(&path(), ping())).await;
    assert_eq!(answer.event(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert_eq!(answer.header("cache-control"), "no-cache, no-transform");
    assert_eq!(answer.header("x-accel-buffering"), "no");
    assert_eq!(answer.header("mcp-session-id"), "", "no session is made");
}

#[tokio::test]
async fn a_session_id_that_is_sent_is_ignored() {
    let mut request = post(&path(), ping());
    request.headers_mut().insert("mcp-session-id", "whatever".parse().expect("value"));
    assert_eq!(send(&router(), request).await.status, StatusCode::OK);
}

#[tokio::test]
async fn ids_come_back_as_they_were() {
    for id in [json!(0), json!(-5), json!(i64::MAX), json!("ä\u{1}"), json!("")] {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        assert_eq!(send(&router(), post(&path(), body)).await.event()["id"], id);
    }
}

#[tokio::test]
async fn initialize_settles_known_versions_and_offers_the_newest_for_others() {
    let introduction = |version: &str| {
        rpc(
            "initialize",
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
        )
    };
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let result = send(&router(), post(&path(), introduction(version))).await.event()["result"].clone();
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"], json!({"name": "gsj", "version": ""}));
        let expected = json!({
            "experimental": {},
            "prompts": {"listChanged": false},
            "resources": {"listChanged": false, "subscribe": false},
            "tools": {"listChanged": false},
        });
        assert_eq!(result["capabilities"], expected);
    }
    for version in ["2026-07-28", "1999-01-01", "x", "9999-12-31"] {
        let mut request = post(&path(), introduction(version));
        // Also when the header names it: the body is what settles the version.
        request.headers_mut().insert("mcp-protocol-version", version.parse().expect("value"));
        assert_eq!(send(&router(), request).await.event()["result"]["protocolVersion"], "2025-11-25", "{version}");
    }
}

#[tokio::test]
async fn notifications_and_answers_are_accepted_with_an_empty_body() {
    for body in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "id": 3, "result": {}}),
    ] {
        let answer = send(&router(), post(&path(), body.to_string())).await;
        assert_eq!((answer.status, answer.body.as_str()), (StatusCode::ACCEPTED, ""));
    }
}

#[tokio::test]
async fn an_unknown_protocol_version_header_is_400() {
    for (version, status) in
        [("2025-06-18", 200), ("2025-03-26", 200), ("1999-01-01", 400), ("2026-07-28", 400), ("", 400)]
    {
        let mut request = post(&path(), rpc("tools/list", json!({})));
        request.headers_mut().insert("mcp-protocol-version", version.parse().expect("value"));
        assert_eq!(send(&router(), request).await.status.as_u16(), status, "{version}");
    }
}

#[tokio::test]
async fn an_unknown_method_is_an_error_in_the_event_with_the_method_as_data() {
    for method in [
        "nope",
        "server/discover",
        "logging/setLevel",
        "resources/subscribe",
        "completion/complete",
        "tasks/get",
        "TOOLS/LIST",
    ] {
        let error = send(&router(), post(&path(), rpc(method, json!({})))).await.event()["error"].clone();
        assert_eq!((&error["code"], &error["data"]), (&json!(-32601), &json!(method)));
    }
}

#[tokio::test]
async fn params_of_another_form_are_an_error_in_the_event() {
    for (method, params) in [
        ("tools/call", json!({})),
        ("tools/call", json!({"name": 1})),
        ("tools/call", json!({"name": "case_status", "arguments": [1]})),
        ("initialize", json!({})),
        ("prompts/get", json!({"name": "x"})),
    ] {
        let message = send(&router(), post(&path(), rpc(method, params))).await.event();
        assert_eq!(message["error"]["code"], -32602, "{method}: {message}");
    }
}

#[tokio::test]
async fn a_name_that_stands_twice_means_the_last_and_a_meta_of_another_form_is_ignored() {
    for (body, result) in [
        (r#"{"jsonrpc":"2.0","id":2,"id":1,"method":"ping"}"#, json!({})),
        (r#"{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}"#, json!({})),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}"#, json!({})),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":[]},"params":{}}"#,
            json!({"prompts": []}),
        ),
    ] {
        let answer = send(&router(), post(&path(), body)).await.event();
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": result}), "{body}");
    }
    let body =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no","name":"case_status","_meta":0}}"#;
    assert_eq!(send(&router(), post(&path(), body)).await.event()["result"]["isError"], false);
}

#[tokio::test]
async fn the_empty_collections_are_empty() {
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let message = send(&router(), post(&path(), rpc(method, json!({})))).await.event();
        assert_eq!(message["result"][member], json!([]), "{method}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_400_parse_error_with_null_id() {
    for body in ["", "{", "nonsense", "{\"id\":1", "\u{feff}{}", "[1", "\"\\ud800\""] {
        let answer = send(&router(), post(&path(), body)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body:?}");
        assert_eq!((&answer.json()["error"]["code"], &answer.json()["id"]), (&json!(-32700), &Value::Null));
    }
    let deep = "[".repeat(100_000);
    assert_eq!(send(&router(), post(&path(), deep)).await.status, StatusCode::BAD_REQUEST);
    let bytes = Body::from(vec![0xff, 0xfe]);
    assert_eq!(send(&router(), post(&path(), bytes)).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn batches_and_wrong_envelopes_are_400_invalid_params() {
    for body in [
        json!([]),
        json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]),
        json!({}),
        json!(null),
        json!("ping"),
        json!({"id": 1, "method": "ping"}),
        json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "2.0", "id": 1, "method": 3}),
        json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}),
    ] {
        let answer = send(&router(), post(&path(), body.to_string())).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(answer.json()["error"]["code"], -32602, "{body}");
    }
}

#[tokio::test]
async fn accept_must_admit_both_forms() {
    for (accept, status) in [
        ("*/*", 200),
        ("application/json, text/event-stream", 200),
        ("text/event-stream;q=0.5,application/json;q=0.9", 200),
        ("Application/JSON, Text/Event-Stream", 200),
        ("application/json", 406),
        ("text/event-stream", 406),
        ("text/html", 406),
    ] {
        let mut request = post(&path(), ping());
        request.headers_mut().insert("accept", accept.parse().expect("value"));
        assert_eq!(send(&router(), request).await.status.as_u16(), status, "{accept}");
    }
    let mut request = post(&path(), ping());
    request.headers_mut().remove("accept");
    assert_eq!(send(&router(), request).await.status, StatusCode::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn content_type_must_be_json() {
    for (kind, status) in [("application/json; charset=utf-8", 200), ("text/plain", 400), ("application/jsonp", 400)] {
        let mut request = post(&path(), ping());
        request.headers_mut().insert("content-type", kind.parse().expect("value"));
        let answer = send(&router(), request).await;
        assert_eq!(answer.status.as_u16(), status, "{kind}");
        if status == 400 {
            assert!(answer.header("content-type").starts_with("text/plain"));
        }
    }
}

#[tokio::test]
async fn a_body_over_four_mebibytes_is_413() {
    let fits = format!("{}{}", ping(), " ".repeat(4 * 1024 * 1024 - ping().len()));
    assert_eq!(send(&router(), post(&path(), fits.clone())).await.status, StatusCode::OK);
    assert_eq!(send(&router(), post(&path(), fits + " ")).await.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn every_method_but_post_is_405_and_says_what_is_allowed() {
    for method in ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"] {
        let request = Request::builder().method(method).uri(path()).body(Body::empty()).expect("valid");
        let answer = send(&router(), request).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "POST"), "{method}");
    }
}

#[tokio::test]
async fn the_host_header_is_not_checked() {
    let mut request = post(&path(), ping());
    request.headers_mut().insert("host", "some.other.name:1".parse().expect("value"));
    assert_eq!(send(&router(), request).await.status, StatusCode::OK);
}

#[tokio::test]
async fn over_a_real_socket_a_get_ends_and_a_post_is_served() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let server =
        tokio::spawn(async move { axum::serve(listener, service_of(crate::support::library()).router()).await });
    let exchange = move |head: String, body: String| {
        let mut stream = TcpStream::connect(address).expect("listening");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        write!(stream, "{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the connection ends");
        answer
    };
    let answers = tokio::task::spawn_blocking(move || {
        let get = exchange(format!("GET {} HTTP/1.1\r\naccept: text/event-stream", path()), String::new());
        let kind = "content-type: application/json\r\naccept: */*";
        let post = |path: String, body: String| exchange(format!("POST {path} HTTP/1.1\r\n{kind}"), body);
        // Sent whole before a byte is read, as simple clients do.
        let large = || " ".repeat(12 * 1024 * 1024);
        let refused = [post(path(), large()), post("/mcp/none".to_owned(), large())];
        (get, post(path(), rpc("tools/list", json!({}))), refused)
    });
    let (get, post, [large, refused]) = answers.await.expect("exchanged");
    server.abort();
    assert!(large.starts_with("HTTP/1.1 413 "), "{large}");
    assert!(refused.starts_with("HTTP/1.1 401 ") && refused.contains(r#""id":null"#), "{refused}");
    assert!(get.starts_with("HTTP/1.1 405 "), "{get}");
    assert!(post.starts_with("HTTP/1.1 200 ") && post.contains("event: message\r\ndata: {"), "{post}");
}
