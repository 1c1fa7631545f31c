"""The API in the words of OpenAI's, so that its clients can run agents: a model's name is an agent's."""
