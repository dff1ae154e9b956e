//! Templates against what Jinja itself made of them (`jinja_cases/record.py`).

use gsj_trace::json::{Value, ValueRef};
use gsj_trace::rerender::{ChatTemplate, RenderOptions};

/// Cases that are known to come out otherwise, and how.
const KNOWN: [(&str, &str); 0] = [];

#[test]
fn templates_render_as_jinja_renders_them() {
    let recorded = Value::parse(include_bytes!("jinja_cases/recorded.json")).expect("json");
    let variables = match recorded.get("variables").map(ValueRef::to_owned) {
        Some(Value::Object(variables)) => variables,
        other => panic!("variables: {other:?}"),
    };
    let options = RenderOptions { variables, ..RenderOptions::default() };
    let mut wrong = Vec::new();
    for case in recorded.get("cases").and_then(ValueRef::as_array).expect("cases") {
        let text = |key: &str| case.get(key).and_then(ValueRef::as_str);
        let name = text("name").expect("a name");
        let found = ChatTemplate::named(name, text("template").expect("a template"))
            .and_then(|template| template.render(&[], None, &options));
        match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, kept)) => assert_eq!(found.as_deref().ok(), Some(*kept), "{name}: a known difference changed"),
            None if found.as_deref().ok() == text("text") => {}
            None => wrong.push(format!("{name}\n  jinja {:?}\n  ours  {found:?}", text("text"))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
