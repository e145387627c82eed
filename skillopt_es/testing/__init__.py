"""
For authors of adapters: checks that every adapter has to pass, ours included.

    from skillopt_es.testing.models import MODEL_CHECKS, ModelCase

    @pytest.mark.parametrize("name", MODEL_CHECKS)
    def test_my_model(name):
        MODEL_CHECKS[name](ModelCase(open=my_adapter.open_model, settings=MY_SETTINGS))
"""
