//! What `verify` checks of an estate that was built: host, lock, task bank and service against the corpus.

use super::{Rule, rule};

const HOST: &str = "An episode gets what the host has, whatever the lock says of it.";
const BUILT: &str = "The lock says what was pushed; trainers and services take its word for it.";

pub(super) const RULES: &[Rule] = &[
    Rule {
        meaning: "the lock has a case that is not in the corpus",
        why: "A case that was deleted would go on being trained on.",
        hint: "run `gsj estate scaffold` without --only, which forgets the cases that went",
        example: "case_old in corpus.lock.json, no */cases/case_old\n--\nthe same cases in both",
        defect: Some("W10"),
        ..rule("verify.lock", "11")
    },
    Rule {
        meaning: "the lock's block `corpus` is not what `corpus.yaml` gives",
        why: BUILT,
        hint: "run `gsj estate scaffold`, or put back the corpus.yaml that the lock was written from",
        example: "\"owner\": \"somebody\" in the lock, owner: gsj-staging in corpus.yaml\n--\nequal values",
        defect: Some("W12"),
        ..rule("verify.lock-corpus", "11")
    },
    Rule {
        meaning: "what the lock says of a case is not what the corpus gives",
        why: BUILT,
        hint: "run `gsj estate scaffold`; if the corpus did not change, the lock was edited or merged by hand",
        example: "a timestep, prompt or clone_url in the lock that the case does not have\n--\nequal values",
        defect: Some("W12"),
        ..rule("verify.lock-case", "11")
    },
    Rule {
        meaning: "the lock has a case in another split than the corpus",
        why: "A case for evaluation would be trained on.",
        hint: "run `gsj estate all`: the case was moved after the lock was written",
        example: "\"split\": \"train\" in the lock, eval/cases/case_demo\n--\nthe same split in both",
        ..rule("verify.split", "11")
    },
    Rule {
        meaning: "a commit in the lock is not the one that the corpus gives",
        why: "Ids are computed from the corpus alone. Another id is another text, history, identity or date.",
        hint: "run `gsj estate scaffold`: the corpus changed after the lock was written, or the lock was edited",
        example: "a page edited after `gsj estate scaffold`\n--\n`gsj estate all` after each edit",
        defect: Some("W12"),
        ..rule("verify.ids", "11")
    },
    Rule {
        meaning: "a repository cannot be cloned, or lacks an object that it needs",
        why: "No episode of the case can begin, or one could begin with a damaged text.",
        hint: "run `gsj estate scaffold`; damaged objects are written anew when the repository is removed before",
        example: "a pack that was cut off by a full disk\n--\nevery object reads back with its own digest",
        ..rule("verify.clone", "11")
    },
    Rule {
        meaning: "a repository holds objects that the corpus does not give",
        why: "What no branch names can still be fetched by its id: a later page, for example.",
        hint: "find out who wrote there; then remove the repository and run `gsj estate scaffold`",
        example: "objects of an earlier push that nothing names\n--\nthe objects of the branches and no others",
        defect: Some("W12"),
        ..rule("verify.objects", "11")
    },
    Rule {
        meaning: "the host's branches are not those of the lock",
        why: HOST,
        hint: "run `gsj estate scaffold`, which moves every branch to where it belongs and removes the others",
        example: "a branch pushed by hand\n--\nthe branches of the lock, at its commits",
        ..rule("verify.refs", "11")
    },
    Rule {
        meaning: "the host has tags or other refs that are no branches",
        why: "They name commits that an episode could fetch.",
        hint: "delete them on the host, as `git push --delete URL TAG` does",
        example: "refs/tags/main\n--\nrefs/heads/* alone",
        defect: Some("W12"),
        ..rule("verify.other-refs", "11")
    },
    Rule {
        meaning: "HEAD of a repository names another branch than a plain clone should check out",
        why: "A clone without a branch checks out nothing, or a text that was not meant.",
        hint: "run `gsj estate scaffold`; on other git hosts set the default branch",
        example: "HEAD: refs/heads/master\n--\nHEAD: refs/heads/main",
        defect: Some("W8"),
        ..rule("verify.head", "8")
    },
    Rule {
        meaning: "the files of a branch are not those of the corpus",
        why: HOST,
        hint: "run `gsj estate scaffold`; when that changes nothing, the host does not give out what was pushed",
        example: "md/page_0002.md with CRLF, the source with LF\n--\nthe source's bytes",
        ..rule("verify.branch", "11")
    },
    Rule {
        meaning: "a page that two neighbouring timesteps share is not the same in both",
        why: "Timesteps are one document that grows. Two texts of one page would tell which timestep is real.",
        hint: "run `gsj estate scaffold`",
        example: "page 1 of timestep-2 differs from page 1 of timestep-1\n--\nthe same blob in both",
        ..rule("verify.prefix", "11")
    },
    Rule {
        meaning: "the retrieval service does not answer, or is not ready",
        why: "Episodes would have no search.",
        hint: "start it, or wait until its index is built; --mcp-url says where it is, --skip-ingest leaves it out",
        example: "{\"state\": \"indexing\"}\n--\n{\"state\": \"ready\"}",
        ..rule("verify.mcp", "11")
    },
    Rule {
        meaning: "the retrieval service does not serve exactly the corpus's cases",
        why: "An episode of a case that is not served is refused; one that is served too much was not meant to be.",
        hint: "run `gsj estate ingest`; details are told to the holder of the service's own secret only",
        example: "case_new scaffolded after the service read its sources\n--\nthe same cases in both",
        ..rule("verify.mcp-cases", "11")
    },
    Rule {
        meaning: "pages, timesteps or commit of a served case are not those of the corpus and lock",
        why: "The service answers from an earlier state.",
        hint: "run `gsj estate ingest`",
        example: "a push while the service was indexing\n--\nthe main commit of the lock",
        defect: Some("W11"),
        ..rule("verify.mcp-facts", "11")
    },
    Rule {
        meaning: "the text that the retrieval service gives for a page is not the page's, or of a later page",
        why: "The agent would read another text than its checkout has, or one that does not exist yet.",
        hint: "run `gsj estate ingest`; when that changes nothing, the service reads another source: do not train with it",
        example: "a service over another corpus with as many pages\n--\nthe SHA-256 of the source's bytes",
        defect: Some("W12"),
        ..rule("verify.mcp-text", "11")
    },
    Rule {
        meaning: "the task bank is missing, or not the file that the lock names",
        why: "A trainer would read tasks of another state of the corpus.",
        hint: "run `gsj estate taskbank`",
        example: "taskbank.parquet of last week\n--\nthe SHA-256 of the lock",
        ..rule("verify.taskbank", "11")
    },
    Rule {
        meaning: "the task bank's rows are not those that the corpus gives",
        why: "A prompt, split or image that differs is another task.",
        hint: "run `gsj estate taskbank`",
        example: "prompts.yaml edited after `gsj estate taskbank`\n--\nevery triple of case, timestep and prompt once",
        defect: Some("W12"),
        ..rule("verify.taskbank-rows", "11")
    },
];
