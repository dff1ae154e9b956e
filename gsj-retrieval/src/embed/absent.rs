//! Stands where the client does, in a build without the feature `embeddings`: no value of it can be made.

use super::{EmbedError, EmbedOptions};
use crate::vectors::Vector;
use std::time::Duration;

pub(super) const CODE: &str = "";

#[derive(Debug)]
pub(super) enum Client {}

impl Client {
    pub(super) fn new(_: &EmbedOptions) -> Result<Self, EmbedError> {
        Err(EmbedError::Absent)
    }

    pub(super) fn again(&self, _: &EmbedOptions) -> Result<Self, EmbedError> {
        match *self {}
    }

    pub(super) fn late(&self, _: Duration) -> EmbedError {
        match *self {}
    }

    pub(super) fn unusable(&self, _: String) -> EmbedError {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "stands for a call that waits")]
    pub(super) async fn embed(&self, _: &EmbedOptions, _: &[String]) -> Result<Vec<Vector>, EmbedError> {
        match *self {}
    }
}
