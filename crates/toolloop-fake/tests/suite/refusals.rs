use serde_json::{Value, json};
use toolloop_fake::{FakeServer, Reply, Script};

use crate::client::{Client, streamed, whole};

#[test]
fn what_the_api_refuses_reaches_no_script() {
    let server = FakeServer::start(Script::new([Reply::text("the only one")]));
    let mut client = Client::connect(&server);
    let refused = client.ask(&json!({"model": "m", "messages": []}));
    assert_eq!(refused.status, 400);
    assert_eq!(refused.header("content-type"), Some("application/json"));
    assert_eq!(refused.header("x-request-id"), Some("req_fake_1"));
    assert_eq!(
        refused.body,
        "{\n  \"error\": {\n    \"message\": \"Invalid 'messages': empty array. Expected an array \
         with minimum length 1, but got an empty array instead.\",\n    \
         \"type\": \"invalid_request_error\",\n    \"param\": \"messages\",\n    \
         \"code\": \"empty_array\"\n  }\n}"
    );
    assert_eq!(client.ask(&streamed()).text(), "the only one");
    let exhausted = client.ask(&streamed());
    assert_eq!(exhausted.status, 400);
    assert_eq!(exhausted.json()["error"]["message"], "the script has no reply left for request 3");
}

#[test]
fn a_body_that_is_not_json_is_refused() {
    let server = FakeServer::start(Script::new([]));
    let mut client = Client::connect(&server);
    let refused = client.ask(&Value::Null);
    assert_eq!(refused.status, 400);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("We could not parse the JSON body of your request."), "{message}");
}

#[test]
fn a_key_is_asked_for() {
    let server = FakeServer::start(Script::new([Reply::text("in")]).require_key("sk-right"));
    let mut client = Client::connect(&server);
    let mut ask = |headers: &[(&str, &str)]| {
        client.send("POST", "/v1/chat/completions", headers, &streamed());
        client.response()
    };
    let none = ask(&[]);
    assert_eq!((none.status, &none.json()["error"]["code"]), (401, &Value::Null));
    let wrong = ask(&[("authorization", "Bearer sk-wrong-0123456789")]);
    let expected = json!({
        "error": {
            "message": "Incorrect API key provided: sk-wrong*******6789. You can find your API \
                key at https://platform.openai.com/account/api-keys.",
            "type": "invalid_request_error", "param": null, "code": "invalid_api_key",
        },
    });
    assert_eq!((wrong.status, wrong.json()), (401, expected));
    assert_eq!(ask(&[("Authorization", "Bearer sk-right")]).text(), "in");
    client.send("GET", "/v1/models", &[], &Value::Null);
    assert_eq!(client.response().status, 401);
}

#[test]
fn only_known_models_are_served() {
    let server = FakeServer::start(Script::new([Reply::text("ok")]).models(["m"]));
    let mut client = Client::connect(&server);
    let mut unknown = whole();
    unknown["model"] = json!("gpt-9");
    let refused = client.ask(&unknown);
    let expected = json!({
        "error": {
            "message": "The model `gpt-9` does not exist or you do not have access to it.",
            "type": "invalid_request_error", "param": null, "code": "model_not_found",
        },
    });
    assert_eq!((refused.status, refused.json()), (404, expected));
    assert_eq!(client.ask(&whole()).status, 200);
}

#[test]
fn paths_and_methods_are_known() {
    let server = FakeServer::start(Script::new([]));
    let mut client = Client::connect(&server);
    let mut ask = |method: &str, path: &str| {
        client.send(method, path, &[], &Value::Null);
        let response = client.response();
        (response.status, response.json()["error"]["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(ask("POST", "/v1/embeddings"), (404, "Invalid URL (POST /v1/embeddings)".into()));
    assert_eq!(
        ask("GET", "/v1/chat/completions"),
        (
            405,
            "Not allowed to GET on /v1/chat/completions. (HINT: Perhaps you meant to use a \
             different HTTP method?)"
                .into()
        )
    );
}
