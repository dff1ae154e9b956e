//! Splits, cases, timesteps and pages.

use super::{Rule, rule};

const CONTRACT: &str = "What is not a part of the contract is a mistake or a leak: a page in the wrong place, a note for \
                        colleagues, a file of an editor. It would be dropped in silence.";

pub(super) const RULES: &[Rule] = &[
    Rule {
        meaning: "there is neither `train/` nor `eval/`",
        why: "A corpus without cases has nothing to train on, and is most likely another folder.",
        hint: "put cases under train/cases/ or eval/cases/",
        example: "corpus/corpus.yaml\ncorpus/AGENTS.md\ncorpus/skills/\n--\ncorpus/train/cases/case_demo/",
        ..rule("split.none", "2")
    },
    Rule {
        meaning: "something else than the directory `cases` stands in a split",
        why: CONTRACT,
        hint: "move it out of the split; a case belongs one level deeper, under cases/",
        example: "train/case_demo/\n--\ntrain/cases/case_demo/",
        ..rule("split.stray", "2")
    },
    Rule {
        meaning: "a split has no directory `cases`",
        why: "A split that is there and holds nothing is most likely one that was laid out wrongly.",
        hint: "make cases/ in the split, or remove the split",
        example: "train/\n--\ntrain/cases/",
        ..rule("split.cases-missing", "2")
    },
    Rule {
        meaning: "something else than a directory stands among the cases",
        why: CONTRACT,
        hint: "move it out of cases/; a split without cases is left out, as git keeps no empty directory",
        example: "train/cases/index.md\neval/cases/.gitkeep\n--\ntrain/cases/case_demo/",
        defect: Some("W20"),
        ..rule("split.cases-stray-file", "2")
    },
    Rule {
        meaning: "no split holds a case",
        why: "A corpus without cases has nothing to train on.",
        hint: "put at least one case under train/cases/ or eval/cases/",
        example: "train/cases/\neval/cases/\n--\ntrain/cases/case_demo/",
        ..rule("split.no-cases", "2")
    },
    Rule {
        meaning: "a case stands in both splits",
        why: "What is evaluated on would be trained on.",
        hint: "decide for one split, and remove the case from the other",
        example: "train/cases/case_demo/\neval/cases/case_demo/\n--\ntrain/cases/case_demo/",
        ..rule("case.both-splits", "3")
    },
    Rule {
        meaning: "a case's directory has no case id, or is a symbolic link",
        why: "The id becomes the repository's name. A link could bring one case into both splits under two names.",
        hint: "rename it: small letters, digits, underscore and dash, the first a letter or digit; put a copy for a link",
        example: "train/cases/Case 1/\n--\ntrain/cases/case_1/",
        defect: Some("W16"),
        ..rule("case.id", "2")
    },
    Rule {
        meaning: "something stands in a case that is neither `case.yaml` nor a timestep's directory",
        why: "A timestep whose directory is named wrongly would silently not be built.",
        hint: "rename it to timestep-T (T from 1, no leading zero) or move it out of the case",
        example: "case_demo/timestep-03/\n--\ncase_demo/timestep-3/",
        defect: Some("W1"),
        ..rule("case.stray", "2")
    },
    Rule {
        meaning: "`case.yaml` is not UTF-8",
        why: "Title and notes are shown to people.",
        hint: "save the file as UTF-8",
        example: "title: caf\\xE9        (Latin-1)\n--\ntitle: caf\\xC3\\xA9    (UTF-8)",
        ..rule("case.meta-utf8", "2")
    },
    Rule {
        meaning: "`case.yaml` is not one YAML document, or has a key twice",
        why: "What two readers read differently is not a fact about the case.",
        hint: "mend the file at the place named: one document, every key once",
        example: "title: [\n--\ntitle: The mill",
        ..rule("case.meta-syntax", "2")
    },
    Rule {
        meaning: "`case.yaml` holds something else than a `title` and `notes`, both strings",
        why: "A key that is written wrong would otherwise be a note that silently isn't there.",
        hint: "write title and notes as strings, in quotes where YAML could read them as something else, and nothing else",
        example: "title: 1984\nsplit: train\n--\ntitle: \"1984\"",
        ..rule("case.meta-shape", "2")
    },
    Rule {
        meaning: "a case has no timestep",
        why: "A case becomes a repository with a branch for each timestep; there is none to build.",
        hint: "make timestep-T/pages/ with the pages 1..T, or remove the case",
        example: "case_demo/case.yaml\n--\ncase_demo/timestep-1/pages/page_0001.md",
        ..rule("case.no-timesteps", "2")
    },
    Rule {
        meaning: "something stands in a timestep that is neither the directory `pages` nor the file `prompts.yaml`",
        why: CONTRACT,
        hint: "rename it to pages or prompts.yaml, or move it out of the timestep",
        example: "timestep-2/prompts.yml\n--\ntimestep-2/prompts.yaml",
        ..rule("ts.stray", "2")
    },
    Rule {
        meaning: "a timestep has no directory `pages`",
        why: "A timestep is a whole state: it holds every page up to its number, nothing comes from another timestep.",
        hint: "put the pages 1..T into timestep-T/pages/",
        example: "timestep-2/prompts.yaml\n--\ntimestep-2/pages/page_0001.md\ntimestep-2/pages/page_0002.md",
        ..rule("ts.pages-missing", "3")
    },
    Rule {
        meaning: "nothing: the only rule whose findings always pass, it states a faultless timestep's pages and prompts",
        why: "It shows that the timestep was looked at, and what was found in it.",
        ..rule("ts.pass", "6")
    },
    Rule {
        meaning: "something stands among the pages that is no page file",
        why: "The page's number is its name. Digits of another script, or a line feed at the end of the name, could shadow the \
              page that people see; a link brings in a text from elsewhere.",
        hint: "rename it to page_NNNN.md (four ASCII digits, small letters), put a copy for a link, or move it out",
        example: "pages/page_1.md\npages/page_0001.MD\npages/page_00001.md\n--\npages/page_0001.md",
        defect: Some("W1, W16"),
        ..rule("page.stray", "2")
    },
    Rule {
        meaning: "a page is not UTF-8, or holds a NUL byte",
        why: "Pages are handed to a model, and to the search, as text. The page counts as missing.",
        hint: "save the page as UTF-8 text; a byte order mark and CRLF are allowed and kept",
        example: "caf\\xE9        (Latin-1)\n--\ncaf\\xC3\\xA9    (UTF-8)",
        defect: Some("W19"),
        ..rule("page.utf8", "2")
    },
    Rule {
        meaning: "the pages of a timestep T are not exactly 1..T",
        why: "A surplus page is one after the cutoff, which the agent must never see; a missing one is a hole in what it may.",
        hint: "add the missing pages, remove the surplus ones, or rename the timestep to the last page's number",
        example: "timestep-2/pages/page_0001.md\ntimestep-2/pages/page_0003.md\n--\ntimestep-2/pages/page_0001.md\n\
                  timestep-2/pages/page_0002.md",
        defect: Some("W5"),
        ..rule("page.census", "3")
    },
    Rule {
        meaning: "a page is not the same, byte for byte, in two timesteps of a case",
        why: "A document grows, it does not change: the earlier timestep must be what was there at the time. A page that was \
              edited later tells of what came later.",
        hint: "make the page the same bytes in every timestep, line ends and the end of the file included: copy it",
        example: "timestep-1/pages/page_0001.md   The claim was filed.\ntimestep-2/pages/page_0001.md   The claim was filed in \
                  May.\n--\ntimestep-1/pages/page_0001.md   The claim was filed.\ntimestep-2/pages/page_0001.md   The claim \
                  was filed.",
        ..rule("page.prefix", "3")
    },
];
