//! The corpus level. While one of its rules is broken the cases are not looked at.

use super::{Rule, rule};

const UNREAD: &str = "Without it nothing is known about the corpus: the rest of this level is then not looked at.";
const CONTRACT: &str = "What is not a part of the contract is a mistake or a leak: a page in the wrong place, a note for \
                        colleagues, a file of an editor. It would be dropped in silence.";

pub(super) const RULES: &[Rule] = &[
    Rule {
        meaning: "`corpus.yaml` is not there as a regular file",
        why: UNREAD,
        hint: "put corpus.yaml into the corpus root, the folder that --corpus names; a link or directory does not do",
        example: "corpus/corpus.yml\n--\ncorpus/corpus.yaml",
        ..rule("yaml.missing", "2")
    },
    Rule {
        meaning: "`corpus.yaml` is not UTF-8",
        why: UNREAD,
        hint: "save the file as UTF-8",
        example: "name: caf\\xE9        (Latin-1)\n--\nname: caf\\xC3\\xA9    (UTF-8)",
        ..rule("yaml.utf8", "2")
    },
    Rule {
        meaning: "`corpus.yaml` is not one YAML document, or has a key twice",
        why: "Of a key that stands twice most readers take the last, so a corpus can name another owner than the one that is \
              seen first. Nests, aliases and lengths have limits, so that no file can fill the memory.",
        hint: "mend the file at the place named: one document, every key once",
        example: "owner: gsj-staging\nowner: gsj-prod\n--\nowner: gsj-staging",
        defect: Some("W2"),
        ..rule("yaml.syntax", "4")
    },
    Rule {
        meaning: "`corpus.yaml` holds something else than a mapping",
        why: UNREAD,
        hint: "write keys and values: name, owner, forgejo, git, sandbox_image, and mcp where there is a service",
        example: "- name\n- owner\n--\nname: minimal-corpus\nowner: gsj-staging",
        ..rule("yaml.not-mapping", "4")
    },
    Rule {
        meaning: "`corpus.yaml` has a key that is not known",
        why: "A key that is written wrong would otherwise be a setting that silently isn't there.",
        hint: "correct or drop the key; known are name, owner, forgejo, mcp, git and sandbox_image",
        example: "sandbox-image: registry.invalid/harness:1\n--\nsandbox_image: registry.invalid/harness:1",
        defect: Some("W6"),
        ..rule("yaml.unknown-key", "4")
    },
    Rule {
        meaning: "`corpus.yaml` has the retired key `eval_case_ids`",
        why: "A case's split is the directory that it stands in. A list beside it could say something else.",
        hint: "move the listed cases under eval/cases/, the others under train/cases/, and drop the key",
        example: "eval_case_ids: [case_holdout]\n--\neval/cases/case_holdout/",
        ..rule("yaml.retired-split-key", "4")
    },
    Rule {
        meaning: "`name`, `owner` or `sandbox_image` is missing or no string with something in it",
        why: "A bare word such as `yes`, `010` or `2026-01-01` is a boolean, a number or a date to one version of YAML and \
              text to the other. Two tools would build two estates of one file.",
        hint: "give the key a string, in quotes where YAML could read it as something else",
        example: "name: 2026-01-01\n--\nname: \"2026-01-01\"",
        defect: Some("W6"),
        ..rule("yaml.string-required", "4")
    },
    Rule {
        meaning: "`name` is no corpus name",
        why: "The name becomes a part of file names and of records.",
        hint: "use letters, digits, dot, underscore and dash, the first a letter or digit",
        example: "name: minimal corpus\n--\nname: minimal-corpus",
        ..rule("yaml.name-token", "2")
    },
    Rule {
        meaning: "`owner` is no owner name",
        why: "The owner becomes a part of every repository's path and of the name of the variable that holds the credential; \
              `../..` would write outside the estate.",
        hint: "use letters, digits, dot, underscore and dash, the first a letter or digit",
        example: "owner: ../gsj-prod\n--\nowner: gsj-prod",
        defect: Some("W13"),
        ..rule("yaml.owner", "2")
    },
    Rule {
        meaning: "`forgejo` is not a mapping of a usable `base_url`",
        why: "The address stands in the clone URL of every case. Without a scheme git takes it for a path and ignores the \
              depth of a clone; a credential in it would be repeated in the lock, which is committed.",
        hint: "give forgejo the one key base_url: http://, https:// or file://, a host or path, and no user or password",
        example: "forgejo:\n  base_url: http://u:secret@git.invalid\n--\nforgejo:\n  base_url: http://git.invalid:3000",
        defect: Some("W3"),
        ..rule("yaml.forgejo", "4")
    },
    Rule {
        meaning: "`mcp` is there and not a mapping of `url_base`, an http address that a host can have",
        why: "Absent it means that there is no retrieval service; present and empty it could mean that or a mistake.",
        hint: "give mcp the one key url_base, or drop mcp where there is no service",
        example: "mcp:\n--\nmcp:\n  url_base: http://mcp.invalid:8790",
        ..rule("yaml.mcp", "4")
    },
    Rule {
        meaning: "`git` is not a mapping of a usable `name`, `email` and `date`; when it passes, that git's clean-up changes one",
        why: "Name, address and date are a part of every commit id. A date without an offset would be read in the zone of the \
              machine, and a name of punctuation alone is one that git refuses.",
        hint: "give git a name and email with letters or digits, and a date with time and offset, in quotes",
        example: "git:\n  name: gsj-fixtures\n  email: fixtures@gsj.invalid\n  date: 2026-01-01\n--\ngit:\n  name: gsj-fixtures\n  \
                  email: fixtures@gsj.invalid\n  date: \"2026-01-01T00:00:00 +0000\"",
        defect: Some("W4"),
        ..rule("yaml.git", "7")
    },
    Rule {
        meaning: "`AGENTS.md` is not there as a regular file",
        why: "Every case repository holds it: it tells the agent how to work.",
        hint: "put AGENTS.md into the corpus root",
        example: "corpus/agents.md\n--\ncorpus/AGENTS.md",
        ..rule("agents.missing", "2")
    },
    Rule {
        meaning: "`AGENTS.md` is empty, not UTF-8, holds a NUL byte or is longer than 16 MiB",
        why: "The file is handed to a model as text.",
        hint: "write the file as UTF-8 text, with something in it",
        example: "AGENTS.md of no bytes\n--\n# Workspace rules",
        ..rule("agents.empty-or-utf8", "2")
    },
    Rule {
        meaning: "there is no directory `skills/`",
        why: "A corpus without skills says so by an empty directory; one that lost them must not look the same.",
        hint: "make the directory skills/, empty or not; a link does not do",
        example: "corpus/skills        (a file)\n--\ncorpus/skills/",
        ..rule("skills.missing", "2")
    },
    Rule {
        meaning: "something else than a directory stands in `skills/`",
        why: CONTRACT,
        hint: "move it into a skill's folder, where files beside SKILL.md stay at home, or out of the corpus",
        example: "skills/README.md\n--\nskills/summarize/README.md",
        ..rule("skills.stray", "2")
    },
    Rule {
        meaning: "a skill's directory has no skill name",
        why: "The name becomes a path in every repository and a part of prompt ids.",
        hint: "rename it: letters, digits, dot, underscore and dash, the first a letter or digit",
        example: "skills/.hidden/SKILL.md\n--\nskills/hidden/SKILL.md",
        ..rule("skills.name-token", "2")
    },
    Rule {
        meaning: "a skill has no card",
        why: "The card is what the skill says; a prompt that names the skill asks what stands in it.",
        hint: "put SKILL.md, in capitals, into the skill's folder as a regular file",
        example: "skills/summarize/skill.md\n--\nskills/summarize/SKILL.md",
        ..rule("skills.card-missing", "2")
    },
    Rule {
        meaning: "a skill's card is empty, not UTF-8, holds a NUL byte or is longer than 16 MiB",
        why: "The card becomes the prompt of tasks.",
        hint: "write the card as UTF-8 text, with something in it",
        example: "SKILL.md of no bytes\n--\n# Skill: summarize",
        ..rule("skills.card-empty-or-utf8", "2")
    },
    Rule {
        meaning: "there is a directory `cases/`, the layout of before there were splits",
        why: "Where a case stands says whether it is trained on. Cases that stand in neither split say nothing.",
        hint: "move each case under train/cases/ or eval/cases/",
        example: "cases/case_demo/\n--\ntrain/cases/case_demo/",
        ..rule("root.pre-split-cases", "6")
    },
    Rule {
        meaning: "`train` or `eval` is no directory",
        why: "A split that cannot be entered would look like a split that isn't there.",
        hint: "make it a directory that holds cases/, or remove it; a link does not do",
        example: "corpus/eval         (a file)\n--\ncorpus/eval/cases/",
        ..rule("root.split-not-dir", "2")
    },
    Rule {
        meaning: "a directory has the name of a file that is generated",
        why: "The lock and the task bank are written there.",
        hint: "rename or remove the directory",
        example: "corpus/taskbank.parquet/\n--\ncorpus/taskbank.parquet",
        ..rule("root.generated-is-dir", "2")
    },
    Rule {
        meaning: "something stands in the corpus root that does not belong there",
        why: CONTRACT,
        hint: "move it out of the corpus, or give it a name that begins with a dot; there are two splits, train and eval",
        example: "corpus/README.md\ncorpus/test/\n--\ncorpus/.notes/README.md",
        ..rule("root.stray", "2")
    },
    Rule {
        meaning: "a file or directory cannot be read",
        why: "What cannot be read cannot be checked, and nothing is built on what was not.",
        hint: "let the user who runs this read it, or see to the disk it is on",
        example: "-rw------- root corpus.yaml\n--\n-rw-r--r-- root corpus.yaml",
        ..rule("io.unreadable", "6")
    },
];
