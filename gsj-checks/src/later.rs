//! What the leak scan needs of a case.

/// Tells which later pages a text quotes: the corpus as the leak scan of `G8:later_page_text` needs it.
///
/// The library reads no corpus, so whoever has one brings it to [`crate::validate_with`]. A trainer without it leaves
/// the rule out.
///
/// ```
/// use gsj_checks::LaterText;
///
/// /// One case; of each page the sentences that no earlier page holds.
/// struct Pages(Vec<(u64, Vec<String>)>);
///
/// impl LaterText for Pages {
///     fn later_pages(&self, _case_id: &str, timestep: u64, text: &str) -> Vec<u64> {
///         let later = self.0.iter().filter(|(page, _)| *page > timestep);
///         later.filter(|(_, own)| own.iter().any(|own| text.contains(own))).map(|(page, _)| *page).collect()
///     }
/// }
/// ```
pub trait LaterText: Sync {
    /// The pages after `timestep` of the case whose own text, text that stands on no page up to `timestep`, occurs in
    /// `text`. Numbers count from 1; order and repeats don't matter. Empty for a case that is not known.
    fn later_pages(&self, case_id: &str, timestep: u64, text: &str) -> Vec<u64>;
}
