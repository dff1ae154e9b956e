//! The part of Forgejo's and Gitea's API that creates repositories (`corpus.md` section 8).

use super::remote::Token;
use crate::error::EstateError;
use crate::web::{Answer, Call, Web};
use serde_json::{Value, json};

/// The API as one owner uses it.
#[derive(Debug)]
pub(crate) struct Forge<'a> {
    pub(crate) web: Web,
    pub(crate) base: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) token: &'a Token,
}

impl Forge<'_> {
    /// Asks whose token this is; it must be the owner's.
    pub(crate) fn check_owner(&self) -> Result<(), EstateError> {
        let answer = self.call("GET", &["user"], None)?;
        let login = match answer.status {
            200 => answer.json().and_then(|body| Some(body.get("login")?.as_str()?.to_owned())),
            _ => return Err(self.refused(&self.api("user"), &answer)),
        };
        match login {
            Some(login) if login == self.owner => Ok(()),
            Some(login) => Err(EstateError::Credential {
                variable: super::credential_variable(self.owner),
                what: format!("belongs to `{}` and not to the owner `{}`", crate::names::shown(&login), self.owner),
            }),
            None => Err(fault(&self.api("user"), "answered without a login; is it a Forgejo or Gitea?")),
        }
    }

    /// Whether there is such a repository.
    pub(crate) fn exists(&self, name: &str) -> Result<bool, EstateError> {
        let answer = self.call("GET", &["repos", self.owner, name], None)?;
        match answer.status {
            200 => Ok(true),
            404 => Ok(false),
            _ => Err(self.refused(&self.repository(name), &answer)),
        }
    }

    /// Makes a repository.
    pub(crate) fn create(&self, name: &str, private: bool, default_branch: &str) -> Result<(), EstateError> {
        let body = json!({"name": name, "private": private, "auto_init": false, "default_branch": default_branch});
        let answer = self.call("POST", &["user", "repos"], Some(body))?;
        match answer.status {
            200 | 201 => Ok(()),
            // An earlier call may have done it, and its answer been lost.
            409 if self.exists(name)? => Ok(()),
            _ => Err(self.refused(&self.repository(name), &answer)),
        }
    }

    /// Says which branch a plain clone checks out.
    pub(crate) fn set_default_branch(&self, name: &str, branch: &str) -> Result<(), EstateError> {
        let body = json!({"default_branch": branch});
        let answer = self.call("PATCH", &["repos", self.owner, name], Some(body))?;
        if answer.status == 200 { Ok(()) } else { Err(self.refused(&self.repository(name), &answer)) }
    }

    fn call(&self, method: &'static str, path: &[&str], body: Option<Value>) -> Result<Answer, EstateError> {
        let url = self.api(&path.join("/"));
        let authorization = format!("token {}", self.token.secret());
        self.web.call(&Call { method, url: &url, shown: &url, authorization: Some(&authorization), accept: None, body })
    }

    fn api(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.base)
    }

    fn repository(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.base, self.owner)
    }

    fn refused(&self, url: &str, answer: &Answer) -> EstateError {
        let variable = super::credential_variable(self.owner);
        let hint = match answer.status {
            401 => format!("the token in {variable} is not accepted: it may have been revoked"),
            403 => format!("the token in {variable} may not do this: it needs write:repository and write:user"),
            404 => {
                "there is no such place: is the base URL that of a Forgejo or Gitea? (any other git host: --host git)"
                    .to_owned()
            }
            409 => "a repository of this name is there, and is not ours to read".to_owned(),
            422 => "the host does not take this name".to_owned(),
            300..=399 => "it redirects: give the URL that it redirects to".to_owned(),
            _ => "it has trouble".to_owned(),
        };
        let said = answer.words().replace(self.token.secret(), "***");
        fault(url, &format!("answered {}: {hint}{said}", answer.status))
    }
}

fn fault(url: &str, what: &str) -> EstateError {
    EstateError::Host { url: url.to_owned(), what: what.to_owned() }
}
