//! The vectors of the last queries.

use crate::vectors::Vector;
use std::collections::HashMap;
use std::sync::Arc;

/// Keeps a bounded number of vectors by the exact text; the one that was not asked for the longest goes first.
#[derive(Debug)]
pub(super) struct Cache {
    kept: HashMap<String, (Arc<Vector>, u64)>,
    most: usize,
    asked: u64,
}

impl Cache {
    pub(super) fn new(most: usize) -> Self {
        Self { kept: HashMap::new(), most, asked: 0 }
    }

    pub(super) fn find(&mut self, text: &str) -> Option<Arc<Vector>> {
        self.asked += 1;
        let (vector, last) = self.kept.get_mut(text)?;
        *last = self.asked;
        Some(Arc::clone(vector))
    }

    pub(super) fn keep(&mut self, text: String, vector: Arc<Vector>) {
        self.asked += 1;
        if self.kept.len() >= self.most && !self.kept.contains_key(&text) {
            // Few are kept, and the endpoint was just asked: looking at all costs nothing beside that.
            let oldest = self.kept.iter().min_by_key(|(_, (_, last))| *last).map(|(text, _)| text.clone());
            oldest.map(|text| self.kept.remove(&text));
        }
        self.kept.insert(text, (vector, self.asked));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_the_longest_goes_first() {
        let mut cache = Cache::new(2);
        let vector = Arc::new(Vector::new(&[1.0]).expect("finite"));
        cache.keep("a".into(), Arc::clone(&vector));
        cache.keep("b".into(), Arc::clone(&vector));
        assert!(cache.find("a").is_some());
        cache.keep("a".into(), Arc::clone(&vector));
        assert!(cache.find("b").is_some() && cache.find("a").is_some(), "one that is kept anew drives out none");
        cache.keep("c".into(), vector);
        assert!(cache.find("b").is_none() && cache.find("a").is_some() && cache.find("c").is_some());
    }
}
