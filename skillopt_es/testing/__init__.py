"""
For authors of adapters and algorithms: checks that each of them has to pass, ours included.

    from skillopt_es.testing.environments import ENVIRONMENT_CHECKS, EnvironmentCase

    CASE = EnvironmentCase(open=mine.open_environment, made=write_items, replies=("right", "wrong"), secret="right")

    @pytest.mark.parametrize("name", ENVIRONMENT_CHECKS)
    def test_my_environment(name, tmp_path):
        ENVIRONMENT_CHECKS[name](CASE, tmp_path)

    from skillopt_es.testing.models import MODEL_CHECKS, ModelCase

    @pytest.mark.parametrize("name", MODEL_CHECKS)
    def test_my_model(name):
        MODEL_CHECKS[name](ModelCase(open=my_adapter.open_model, settings=MY_SETTINGS))

    from skillopt_es.testing.executors import EXECUTOR_CHECKS, ExecutorCase

    @pytest.mark.parametrize("name", EXECUTOR_CHECKS)
    def test_my_executor(name):
        EXECUTOR_CHECKS[name](ExecutorCase(open=my_adapter.open_executor))

    from skillopt_es.testing.algorithms import ALGORITHM_CHECKS, AlgorithmCase

    @pytest.mark.parametrize("name", ALGORITHM_CHECKS)
    def test_my_algorithm(name, tmp_path):
        ALGORITHM_CHECKS[name](AlgorithmCase(config=my_small_run), tmp_path)
"""
