//! Many clients at once over real sockets, each with a scope of its own: the answers are those of one after another.

use crate::support::{NOW, post, secret, send, service_of};
use gsj_cutoff::tokens::{Claims, mint};
use gsj_retrieval::Library;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

const CLIENTS: u32 = 64;
const PAGES: u32 = 60;

/// Three cases of the same words on other pages.
fn library() -> Library {
    let page = |case: usize, number: u32| {
        let lines = (0..8).map(|line| {
            let (a, b) = ((number * 7 + line) % 13, (number + line * line) % 5);
            format!("Case {case} says that crate {a} stood in hall {b}. Entry SN-{:07}.\n\n", number * 10 + line)
        });
        lines.collect::<String>()
    };
    let cases = ["alpha", "beta", "gamma"].into_iter().enumerate();
    let cases = cases.map(|(case, id)| (id.to_owned(), (1..=PAGES).map(|number| page(case, number)).collect()));
    Library::from_pages(cases.collect::<BTreeMap<_, _>>()).expect("valid")
}

/// What a client asks, in its scope: two clients at most share one.
fn questions(client: u32) -> (String, Vec<String>) {
    let case_id = ["alpha", "beta", "gamma"][(client % 3) as usize];
    let timestep = 1 + (client * 11) % PAGES;
    let scope = Claims { case_id: case_id.into(), timestep, episode_id: format!("ep-{client}"), exp: NOW + 60 };
    let token = mint(&scope, &secret()).expect("valid claims");
    let call = |(id, name, arguments): (u32, &str, serde_json::Value)| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let searches = (0..12).map(|n| {
        let query = match n % 4 {
            0 => format!("crate {} hall {}", (client + n) % 13, n % 5),
            // What stands on the last page that is seen, and on pages behind it.
            1 => format!("SN-{:07}", (timestep + n / 4) * 10 + client % 8),
            2 => "entry".to_owned(),
            _ => format!("hall {n} zebra"),
        };
        (n, "search_case", json!({"query": query, "k": 1 + (client + n) % 20}))
    });
    let others = [
        (90, "case_status", json!({})),
        (91, "search_case", json!({"query": client})),
        (92, "decision_stats", json!({})),
    ];
    (format!("/mcp/{token}"), searches.chain(others).map(call).collect())
}

/// The body of the answer to one request on a kept connection.
async fn exchange(stream: &mut BufReader<TcpStream>, path: &str, body: &str) -> String {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\naccept: application/json, \
         text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.expect("it reads");
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).await.expect("an answer");
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await.expect("a header");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("the body");
    String::from_utf8(body).expect("UTF-8")
}

async fn client(address: SocketAddr, client: u32, together: Arc<Barrier>) -> Vec<String> {
    let (path, bodies) = questions(client);
    let mut stream = BufReader::new(TcpStream::connect(address).await.expect("it listens"));
    together.wait().await;
    let mut answers = Vec::new();
    for body in &bodies {
        answers.push(exchange(&mut stream, &path, body).await);
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_clients_get_the_answers_of_one_after_another() {
    let service = service_of(library());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let router = service.router();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    let alone = Arc::new(Barrier::new(1));
    let mut expected = Vec::new();
    for number in 0..CLIENTS {
        expected.push(client(address, number, Arc::clone(&alone)).await);
    }
    // The scopes really differ, and a socket says what the router says.
    let statuses: std::collections::BTreeSet<_> = expected.iter().map(|answers| answers[12].clone()).collect();
    assert_eq!(statuses.len(), 60);
    let (path, bodies) = questions(5);
    assert_eq!(send(&service.router(), post(&path, bodies[0].clone())).await.body, expected[5][0]);
    assert!(expected[49][1].contains("page_0060.md"), "the last page is seen at its timestep");

    let rounds = if std::env::var_os("GSJ_TEST_ALL").is_some() { 5 } else { 1 };
    for round in 0..rounds {
        let together = Arc::new(Barrier::new(CLIENTS as usize));
        let tasks: Vec<_> =
            (0..CLIENTS).map(|number| tokio::spawn(client(address, number, Arc::clone(&together)))).collect();
        for (task, expected) in tasks.into_iter().zip(&expected) {
            assert_eq!(task.await.expect("no panic"), *expected, "round {round}");
        }
    }
    server.abort();
}
