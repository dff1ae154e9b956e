//! Invented case files: the same arguments give the same bytes.

use std::fs;
use std::path::Path;

const FIRST: [&str; 40] = [
    "Anke",
    "Bram",
    "Celia",
    "Dorian",
    "Edda",
    "Fabian",
    "Gesa",
    "Hakon",
    "Ilka",
    "Jorin",
    "Kerstin",
    "Lothar",
    "Maya",
    "Nikolaus",
    "Odile",
    "Pavel",
    "Quirin",
    "Ruth",
    "Silvan",
    "Tilda",
    "Ulrich",
    "Vera",
    "Wilma",
    "Xaver",
    "Yvonne",
    "Zacharias",
    "Greta",
    "Marta",
    "Elena",
    "Jürgen",
    "Käthe",
    "Rolf",
    "Søren",
    "Thérèse",
    "Hannelore",
    "Imre",
    "Ludmila",
    "Oskar",
    "Petra",
    "Sabine",
];
const LAST: [&str; 40] = [
    "Vogt",
    "Ostrow",
    "Nym",
    "Falk",
    "Quist",
    "Reuss",
    "Holm",
    "Brix",
    "Sand",
    "Weiss",
    "Adler",
    "Pries",
    "Immelmann",
    "Neuhaus",
    "Hofstetter",
    "Brandmeyer",
    "Moreau",
    "Rost",
    "Größmann",
    "Lindqvist",
    "Müller",
    "Oberländer",
    "Petersen",
    "Rademacher",
    "Schilling",
    "Tannhauser",
    "Uhl",
    "Vandermeer",
    "Wachholz",
    "Zollinger",
    "Ambros",
    "Baumgart",
    "Czerny",
    "Drews",
    "Ehlers",
    "Fontaine",
    "Gerlach",
    "Hartwig",
    "Jansen",
    "Kowalski",
];
const FIRMS: [&str; 20] = [
    "Nordmole KG",
    "Pfeiler & Sohn",
    "Kranwerk AG",
    "Treidel GmbH",
    "Salzhof eG",
    "Lotsenverein",
    "Speicher Nord SE",
    "Amber Logistics GmbH",
    "Cobalt Freight AG",
    "Bergmann Trust",
    "Drews Foundation",
    "Tarn Valley Paper",
    "Northmark Mutual",
    "Hafenbahn OHG",
    "Weserkontor",
    "Elbe Marine Insurance",
    "Kesselbau Ost",
    "Granit & Partner",
    "Silo Union",
    "Delta Cold Storage",
];
const PLACES: [&str; 20] = [
    "lock house",
    "grain quay",
    "tar yard",
    "rope walk",
    "weigh house",
    "dry dock",
    "toll barn",
    "boiler house",
    "customs shed",
    "Altona depot",
    "Erfurt archive",
    "Görlitz warehouse",
    "loading bay",
    "drying shed",
    "north gate",
    "cold store",
    "reading room",
    "signal tower",
    "ferry landing",
    "coal bunker",
];
const GOODS: [&str; 20] = [
    "oak barrels",
    "slate tiles",
    "anchor chains",
    "linen rolls",
    "lamp oil",
    "clock parts",
    "beet sugar",
    "survey instruments",
    "sealed ledgers",
    "glass plates",
    "copper wire",
    "printing plates",
    "brass valves",
    "felt bales",
    "pump housings",
    "turbine blades",
    "tea chests",
    "organ pipes",
    "rail spikes",
    "grinding stones",
];
const WAREN: [&str; 12] = [
    "Eichenfässer",
    "Schieferplatten",
    "Ankerketten",
    "Leinenballen",
    "Lampenöl",
    "Uhrenteile",
    "Kupferdrähte",
    "Messingventile",
    "Druckplatten",
    "Pumpengehäuse",
    "Teekisten",
    "Mühlsteine",
];
const ORTE: [&str; 12] = [
    "Schleusenhaus",
    "Getreidekai",
    "Teerhof",
    "Waagehaus",
    "Trockendock",
    "Zollschuppen",
    "Kesselhaus",
    "Kühlhaus",
    "Kohlenbunker",
    "Fähranleger",
    "Signalturm",
    "Lesesaal",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const MONATE: [&str; 12] = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];
/// `{w}` a person, `{f}` a firm, `{g}` goods, `{p}` a place, `{m}` a month, `{d}` a day, `{n}` an amount, `{i}` a register
/// number, `{x}` a word of the long tail; capitals are the German ones.
const SENTENCES: [&str; 36] = [
    "{w} told {f} on {d} {m} that the {g} lay unopened in the {p}.",
    "{f} billed {n} marks for the storage of the {g} at the {p}.",
    "A letter from {w} to {w}, dated {d} {m}, asks for {n} marks.",
    "{w} saw {w} leave the {p} before noon on {d} {m}.",
    "The register of the {p} lists the {g} under the name of {f}, folio {n}.",
    "{f} and {f} could not agree who owned the {g}.",
    "{w} swore that the seal on the {g} was whole when the {p} was closed.",
    "An expert put the {g} at {n} marks; {w} thought that too low.",
    "The court heard {w} on {d} {m} about the keys to the {p}.",
    "{w} gave {f} notice to clear the {p} within {d} days.",
    "In a signed statement, {w} confirmed attending the hearing at the {p} together with {w}.",
    "A clerk noted in the margin that the {g} were counted twice, once by {w} and once by a representative of {f}.",
    "The ledger shows entry SN-{i} against the account of {f}.",
    "Crate SN-{i} was held overnight at the {p}.",
    "Freight papers countersigned by {w} list {d} crates delivered to the {p} without remark.",
    "{w} deposited {n} marks with {f} as security for the arrangement.",
    "The view of the {p} will take place at 9:15; those who do not come will not be waited for.",
    "Until the decision, the {g} stay where they are and may not be sold.",
    "The value in dispute is set at {n} marks for the time being.",
    "That the lamp at the {p} was broken has been known for {d} months.",
    "We possess a receipt signed by {w}, which shows that {d} crates left the {p} that morning.",
    "The inspector described a {x} {x} beside the {g}, and a smell of {x}.",
    "{w} spoke of {x} and {x}, which nobody else remembers.",
    "The contract leaves the choice of the {x} to {f}, as its third clause says.",
    "Under the {x} of {d} {m} the {x} was to pass to {f}.",
    "Nothing in the file explains the {x}, nor why {w} kept the {x} at the {p}.",
    "{W} teilte {F} am {d}. {M} mit, dass die {G} ungeöffnet im {P} lagen.",
    "{F} verlangt {n} Mark für die Lagerung der {G} im {P}.",
    "Der Zeuge {W} hat die Schlüssel zum {P} am {d}. {M} abgegeben.",
    "Das Gericht hat Beweis erhoben durch Vernehmung von {W} über den Zustand der {G}.",
    "Der Sachverständige schätzt den Wert der {G} auf {n} Mark, was {W} für zu niedrig hält.",
    "Nach dem Vertrag vom {d}. {M} durfte {F} die {G} nicht veräußern.",
    "Die Rechnung Nr. {i} über {n} Mark wurde von {F} nicht beglichen.",
    "{W} erinnert sich an {X} und {X} vor dem {P}.",
    "Die Klägerin beantragt, die Beklagte zur Zahlung von {n} Mark zu verurteilen.",
    "Im {P} fand sich neben den {G} ein {X}, dessen Herkunft ungeklärt ist.",
];
/// Syllables of the words that stand on few pages.
const SYLLABLES: [&str; 32] = [
    "ban", "cor", "del", "fin", "gar", "hol", "jun", "kel", "lam", "mor", "nix", "pol", "qua", "rim", "sel", "tor",
    "ulm", "ver", "wen", "xan", "yor", "zim", "bra", "cle", "dro", "fle", "gri", "kna", "plo", "sche", "stra", "tru",
];
/// How many such words there are.
const TAIL: u64 = 12_000;

/// Numbers that look like nothing (splitmix64).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or(0)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.get(self.below(from.len())).copied().unwrap_or_default()
    }

    /// A word of the long tail: the n-th about n times as rare as the first.
    fn tail(&mut self) -> String {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut rank = (TAIL as f64).powf(share) as u64;
        let mut word = String::new();
        for _ in 0..3 {
            let place = usize::try_from(rank % 32).unwrap_or(0);
            word.push_str(SYLLABLES.get(place).copied().unwrap_or_default());
            rank /= 32;
        }
        word
    }
}

fn sentence(numbers: &mut Numbers, out: &mut String) {
    let mut rest = numbers.pick(&SENTENCES);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((slot, after)) = after.split_once('}') else { break };
        match slot {
            "w" | "W" => {
                out.push_str(numbers.pick(&FIRST));
                out.push(' ');
                out.push_str(numbers.pick(&LAST));
            }
            "f" | "F" => out.push_str(numbers.pick(&FIRMS)),
            "g" => out.push_str(numbers.pick(&GOODS)),
            "G" => out.push_str(numbers.pick(&WAREN)),
            "p" => out.push_str(numbers.pick(&PLACES)),
            "P" => out.push_str(numbers.pick(&ORTE)),
            "m" => out.push_str(numbers.pick(&MONTHS)),
            "M" => out.push_str(numbers.pick(&MONATE)),
            "d" => out.push_str(&(1 + numbers.below(28)).to_string()),
            "n" => out.push_str(&(50 * (1 + numbers.below(400))).to_string()),
            "i" => out.push_str(&format!("{:07}", 100_000 + numbers.below(60_000))),
            _ => out.push_str(&numbers.tail()),
        }
        rest = after;
    }
    out.push_str(rest);
}

/// Page `number` of a case, about two kilobytes.
pub(crate) fn page(case: usize, number: usize) -> String {
    let mut numbers = Numbers((case as u64) << 32 | number as u64);
    let mut out = format!("## Page {number}\n\n");
    while out.len() < 1_900 {
        for _ in 0..3 + numbers.below(3) {
            sentence(&mut numbers, &mut out);
            out.push(' ');
        }
        out.push_str("\n\n");
    }
    out.push_str(&format!("MARK-{case:05}-{number:04}: entered by {}.\n", numbers.pick(&LAST)));
    out
}

/// Writes a corpus of one case for each of the lists of pages.
pub(crate) fn write(root: &Path, cases: &[(String, Vec<String>)]) -> std::io::Result<()> {
    for (id, pages) in cases {
        let folder = root.join(format!("train/cases/{id}/timestep-{}/pages", pages.len()));
        fs::create_dir_all(&folder)?;
        for (number, page) in (1..).zip(pages) {
            fs::write(folder.join(format!("page_{number:04}.md")), page)?;
        }
    }
    Ok(())
}
