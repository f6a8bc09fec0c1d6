//! [`Reading`]: what must be known of a request to read its reply.

use std::borrow::Cow;

use reqwest::Url;
use toolloop_core::{ChatParams, ReducedSchema, StreamEvent};

use super::ids::IdRule;
use super::schema::{Form, reduced};

/// What is said in other words on the wire than here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    /// Names the API and its server in `ProviderData`; empty: there is none.
    origin: Cow<'static, str>,
    /// Tools that the API knows by another name, which stands first.
    names: Vec<(String, String)>,
    reduced: Vec<ReducedSchema>,
}

impl Reading {
    /// Of an API that gives nothing for safe-keeping and takes any name.
    pub(crate) fn new(params: &ChatParams, tools: &[Form], answer: &[Form]) -> Self {
        Self { reduced: reduced(params, tools, answer), ..Self::default() }
    }

    pub(crate) fn with_origin(mut self, origin: Cow<'static, str>) -> Self {
        self.origin = origin;
        self
    }

    pub(crate) fn with_names(mut self, params: &ChatParams, rule: IdRule) -> Self {
        let tools = params.tools.iter().flatten();
        let renamed = tools.filter_map(|tool| match rule.legal(&tool.name) {
            Cow::Owned(legal) => Some((legal, tool.name.clone())),
            Cow::Borrowed(_) => None,
        });
        self.names = renamed.collect();
        self
    }

    /// What is to be told before the reply, once.
    pub(crate) fn take_reduced(&mut self) -> Option<StreamEvent> {
        let reduced = std::mem::take(&mut self.reduced);
        (!reduced.is_empty()).then_some(StreamEvent::SchemasReduced(reduced))
    }

    /// Puts an event of the codec into the words of the request.
    pub(crate) fn translate(&self, event: &mut StreamEvent) {
        match event {
            StreamEvent::ToolCallStart { name, .. } => self.translate_name(name),
            StreamEvent::ToolCallComplete { call, .. } => self.translate_name(&mut call.name),
            StreamEvent::ProviderData { data, .. } if data.api != self.origin => {
                data.api.clear();
                data.api.push_str(&self.origin);
            }
            _ => {}
        }
    }

    fn translate_name(&self, name: &mut String) {
        if let Some((_, original)) = self.names.iter().find(|(legal, _)| legal == name) {
            name.clone_from(original);
        }
    }
}

/// Names an API and the server that serves it, as the origin of `ProviderData`.
///
/// What one server has sealed another cannot open, though it speaks the same API: OpenAI, each
/// resource of Azure and xAI refuse each other's reasoning. Under its maker's host, `home`, the
/// API alone is the name.
pub(crate) fn origin(api: &'static str, url: &Url, home: &str) -> Cow<'static, str> {
    let host = url.host_str().unwrap_or_default();
    match (is_below(url, home), url.port()) {
        (true, _) => Cow::Borrowed(api),
        (false, None) => format!("{api}@{host}").into(),
        (false, Some(port)) => format!("{api}@{host}:{port}").into(),
    }
}

/// Whether the server is one of this domain.
pub(crate) fn is_below(url: &Url, domain: &str) -> bool {
    let before = url.host_str().and_then(|host| host.strip_suffix(domain));
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolloop_core::{ProviderData, ToolCall, ToolDefinition};

    use super::*;

    #[test]
    fn names_and_origins_are_put_back() {
        let tool = |name: &str| ToolDefinition {
            name: name.into(),
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
            retry: None,
        };
        let params = ChatParams {
            tools: Some(vec![tool("files/read"), tool("add")]),
            ..ChatParams::default()
        };
        let rule = IdRule::new(24, |byte| byte.is_ascii_alphanumeric());
        let reading = Reading::new(&params, &[], &[])
            .with_origin("api@host".into())
            .with_names(&params, rule);
        let call = |name: &str| {
            let call = ToolCall { id: "1".into(), name: name.into(), arguments: json!({}) };
            StreamEvent::ToolCallComplete { index: 0, call }
        };
        let data = |api: &str| {
            let data = ProviderData { api: api.into(), data: "{}".into() };
            StreamEvent::ProviderData { index: None, data }
        };
        for (mut event, expected) in [
            (call(&rule.legal("files/read")), call("files/read")),
            (call("add"), call("add")),
            (data("api"), data("api@host")),
        ] {
            reading.translate(&mut event);
            assert_eq!(event, expected);
        }
    }

    #[test]
    fn an_origin_is_an_api_at_a_server() {
        let of = |url: &str| origin("api", &Url::parse(url).unwrap(), "api.openai.com");
        assert_eq!(of("https://api.openai.com/v1"), "api");
        assert_eq!(of("https://eu.api.openai.com/v1"), "api");
        assert_eq!(of("https://notapi.openai.com/v1"), "api@notapi.openai.com");
        assert_eq!(of("https://a.openai.azure.com/openai/v1"), "api@a.openai.azure.com");
        assert_eq!(of("http://127.0.0.1:8080/v1"), "api@127.0.0.1:8080");
    }
}
